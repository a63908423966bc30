/*
 * tools/commands.h -- the verbs of the program, and the table of them.
 *
 * A verb gets its arguments with its own name first, as main() does, and
 * returns an exit code of tools/exit_code.h.
 */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include <stddef.h>

struct command {
    const char *verb;
    const char *summary; /* One line, for `stele --help`. */
    const char *help;    /* What `stele <verb> --help` prints. */
    int (*run)(int argc, char **argv);
};

extern const struct command commands[];
extern const size_t command_count;

/* NULL: no such verb. */
const struct command *command_find(const char *verb);

int cmd_init(int argc, char **argv);
int cmd_put(int argc, char **argv);
int cmd_get(int argc, char **argv);
int cmd_delete(int argc, char **argv);
int cmd_apply(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_tables(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_rebuild(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_backup(int argc, char **argv);
int cmd_restore(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_export(int argc, char **argv);

#endif
