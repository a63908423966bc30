/*
 * tools/rocketmq/config_dir.h -- a broker's config directory, as files.
 */
#ifndef TOOLS_ROCKETMQ_CONFIG_DIR_H
#define TOOLS_ROCKETMQ_CONFIG_DIR_H

#include "base/bytes.h"
#include "base/status.h"
#include "tools/input.h"
#include "tools/rocketmq/layout.h"

/*
 * Read the file `name` of the directory `path`. NOT_FOUND if it is not there.
 * CORRUPT if it is not there but its .bak is: a broker that died between two
 * renames leaves this, and its state is not "nothing".
 */
enum stele_status config_dir_read(const char *path, const char *name,
                                  struct input *input_out,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* For a file that was refused: add to the message that there is a .bak. */
enum stele_status config_dir_mention_backup(const char *path, const char *name,
                                            enum stele_status status,
                                            struct stele_error *error);

enum config_dir_existing { CONFIG_DIR_REFUSE_EXISTING, CONFIG_DIR_REPLACE };

/*
 * Write the files into the directory `path`, made if it is missing. texts[i] is
 * for rocketmq_files[i]; data NULL: leave that file out. EXISTS, and nothing
 * written, if a file is there that is not to be replaced. After any other
 * failure each file is as it was or as it should be.
 */
enum stele_status config_dir_write(const char *path, const struct bytes texts[],
                                   enum config_dir_existing existing,
                                   struct stele_error *error) STELE_MUST_CHECK;

#endif
