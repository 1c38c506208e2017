"""The app of flower_plain.py with terse.flower: a mod in the client, and a strategy around the strategy."""
import terse.codecs
from flower_plain import make_strategy, serve, train
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from terse.flower import AgreedWeights, agreed_weights

client = ClientApp(mods=[agreed_weights()])
client.train()(train)
server = ServerApp()


@server.main()
def main(grid, context):
    codec = terse.codecs.sbc(density=context.run_config["density"])
    serve(grid, context, AgreedWeights(make_strategy(context.run_config["clients"]), up=codec, down=codec))
