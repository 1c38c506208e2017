// Objects as files of a folder.
#ifndef TERSE_TERSECTL_OBJECTS_FOLDER_OBJECTS_H_
#define TERSE_TERSECTL_OBJECTS_FOLDER_OBJECTS_H_

#include <memory>
#include <string>

#include "tersectl/objects/object_store.h"

namespace terse {

// Each object is DIRECTORY/NAME. One that is being written is NAME.partial beside it, which List leaves out.
std::unique_ptr<ObjectStore> MakeFolderObjects(const std::string& directory);

}  // namespace terse

#endif  // TERSE_TERSECTL_OBJECTS_FOLDER_OBJECTS_H_
