/*
 * jdperf annotate --perf: a method's machine code with its source beside it, by perf annotate.
 *
 * perf asks objdump, and objdump looks for "java/util/HashMap.java" below the working directory:
 * the sources that the method's code was made of (inlining brings in others' files) are put into a
 * directory of ours first, out of the user's directories, the profile or the JDK's src.zip.
 */
#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/intern.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/text.h"
#include "jdtool/look/look.h"
#include "jdtool/look/perf_view.h"
#include "jdtool/objects/elf_file.h"
#include "jdtool/record/perf_run.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/view/method_match.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOTTEST_TOLD = 10, OTHERS_TOLD = 5 };

/* User code that was sampled, as perf calls it. Code of one name that was compiled several times
 * has as many pieces. */
struct symbol {
    char *file, *name;
    double percent;
    unsigned pieces;
};

struct choice {
    struct perf_view view;
    const char *method;
    bool all, no_source;
    const char *source_path;
    struct symbol *symbols; /* the hottest first */
    uint32_t count, room;
    bool failed;        /* no memory */
    int match;          /* how well a name fits at best (method_match.h) */
    const char *symbol; /* the one that is meant, and its file */
    const char *file;
};

/* ---- What was sampled ---- */

/* Without blanks around it. */
static char *trimmed(char *text)
{
    text += strspn(text, " ");
    size_t size = strlen(text);
    while (size > 0 && text[size - 1] == ' ') {
        text[--size] = '\0';
    }
    return text;
}

/* "  12.34%<TAB>perf.jit-java.so<TAB>[.] Market.price(int)" */
static bool take_symbol(void *context, char *line)
{
    struct choice *choice = context;
    char *percent = strsep(&line, "\t");
    char *file = strsep(&line, "\t");
    char *name = line ? trimmed(line) : NULL;
    if (!name || percent[0] == '#' || !text_begins(name, "[.] ")) {
        return true;
    }
    struct symbol symbol = {.file = strdup(trimmed(file)),
                            .name = strdup(name + strlen("[.] ")),
                            .percent = strtod(percent, NULL),
                            .pieces = 1};
    if (symbol.file && symbol.name &&
        ARRAY_RESERVE(choice->symbols, choice->count, choice->room) == 0) {
        choice->symbols[choice->count++] = symbol;
        return true;
    }
    free(symbol.file);
    free(symbol.name);
    choice->failed = true;
    return false;
}

static int by_name(const void *one, const void *other)
{
    const struct symbol *a = one;
    const struct symbol *b = other;
    return strcmp(a->name, b->name) ?: strcmp(a->file, b->file);
}

static int by_percent(const void *one, const void *other)
{
    const struct symbol *a = one;
    const struct symbol *b = other;
    return ORDER(b->percent, a->percent) ?: by_name(one, other);
}

/* What has one name becomes one. */
static void merge(struct choice *choice)
{
    struct symbol *symbols = choice->symbols;
    uint32_t count = 0;
    if (choice->count) {
        qsort(symbols, choice->count, sizeof *symbols, by_name);
    }
    for (uint32_t i = 0; i < choice->count; i++) {
        if (count && by_name(&symbols[count - 1], &symbols[i]) == 0) {
            symbols[count - 1].percent += symbols[i].percent;
            symbols[count - 1].pieces++;
            free(symbols[i].file);
            free(symbols[i].name);
        } else {
            symbols[count++] = symbols[i];
        }
    }
    choice->count = count;
    if (count) {
        qsort(symbols, count, sizeof *symbols, by_percent);
    }
}

static int list_symbols(struct choice *choice)
{
    struct words words = {0};
    WORDS_ADD(&words, "--stdio", "-g", "none", "--no-children", "-s", "overhead,dso,sym", "-t",
              "\t");
    int status = perf_view_read(&choice->view, "report", &words, take_symbol, choice, -1);
    if (choice->failed) {
        failed_to(-ENOMEM, "read perf's report");
        return STATUS_FAILED;
    }
    merge(choice);
    return status && choice->count == 0 ? STATUS_FAILED : STATUS_DONE;
}

static void tell(const struct choice *choice, uint32_t from, uint32_t most,
                 bool (*is_told)(const struct choice *choice, const struct symbol *symbol))
{
    for (uint32_t i = from; i < choice->count && most; i++) {
        if (!is_told || is_told(choice, &choice->symbols[i])) {
            detail_message("", "%6.2f %%  %s", choice->symbols[i].percent, choice->symbols[i].name);
            most--;
        }
    }
}

/* ---- What became of a method that has no code of its own ---- */

/* On the sampled stacks. */
struct fate {
    const char *method;
    struct intern hosts; /* into which it was inlined */
    bool is_inlined;     /* the frame before, in the next one */
    bool was_inlined, was_compiled, was_interpreted;
};

/* "        7f0011223344 Market.price(int)", the innermost first; nothing between two stacks. */
static bool take_frame(void *context, char *line)
{
    struct fate *fate = context;
    line += strspn(line, " \t");
    const char *name = line + strspn(line, "0123456789abcdef");
    name += *name == ' ';
    bool is_it = strstr(name, fate->method) != NULL;
    if (!*line) {
        fate->is_inlined = false;
    } else if (text_ends(name, " (inlined)")) {
        fate->is_inlined |= is_it;
    } else {
        fate->was_inlined |= fate->is_inlined;
        if (fate->is_inlined) {
            (void)intern(&fate->hosts, name);
        }
        fate->was_interpreted |= is_it && text_ends(name, " (interpreted)");
        fate->was_compiled |= is_it && !text_ends(name, " (interpreted)");
        fate->is_inlined = false;
    }
    return true;
}

static const char *why_none(const struct fate *fate)
{
    return fate->was_inlined    ? "it was inlined, and its callers have no samples of their own"
           : fate->was_compiled ? "it has no samples of its own, only its callees: see jdperf flame"
           : fate->was_interpreted ? "it was only interpreted: it has no machine code"
                                   : "no sampled method's name contains it";
}

/* The hottest one that it was inlined into. NULL after a message. */
static const struct symbol *choose_host(struct choice *choice)
{
    struct fate fate = {.method = choice->method};
    const struct symbol *host = NULL;
    struct words words = {0};
    WORDS_ADD(&words, "--no-inline", "-F", "ip,sym");
    (void)perf_view_read(&choice->view, "script", &words, take_frame, &fate, -1);
    for (uint32_t i = 0; i < choice->count && !host; i++) {
        uint32_t count = fate.hosts.count;
        if (intern(&fate.hosts, choice->symbols[i].name) && fate.hosts.count == count) {
            host = &choice->symbols[i]; /* it was there already */
        }
    }
    if (host) {
        info_message("'%s' was inlined everywhere; this is the code of its caller:",
                     choice->method);
    } else {
        error_message("failed to find code of '%s': %s. The hottest methods are:", choice->method,
                      why_none(&fate));
        tell(choice, 0, HOTTEST_TOLD, NULL);
    }
    intern_free(&fate.hosts);
    return host;
}

/* ---- Which one ---- */

static bool matches(const struct choice *choice, const struct symbol *symbol)
{
    return choice->match > 0 && method_match(symbol->name, choice->method) == choice->match;
}

static int choose(struct choice *choice)
{
    const struct symbol *chosen = NULL;
    bool more = false;
    uint32_t at = 0;
    for (uint32_t i = 0; i < choice->count; i++) {
        int match = method_match(choice->symbols[i].name, choice->method);
        choice->match = match > choice->match ? match : choice->match;
    }
    for (uint32_t i = 0; i < choice->count; i++) {
        if (matches(choice, &choice->symbols[i])) {
            more = chosen != NULL;
            at = chosen ? at : i;
            chosen = chosen ? chosen : &choice->symbols[i];
        }
    }
    bool is_host = !chosen;
    chosen = chosen ? chosen : choose_host(choice);
    if (!chosen) {
        return STATUS_FAILED;
    }
    choice->symbol = chosen->name;
    choice->file = chosen->file;
    char pieces[32] = "";
    if (chosen->pieces > 1) {
        snprintf(pieces, sizeof pieces, ", in %u pieces of code", chosen->pieces);
    }
    info_message("%s: %.2f %% of the samples%s%s", chosen->name, chosen->percent, pieces,
                 chosen->pieces > 1 && !choice->all ? "; this is the hottest, --all shows all"
                                                    : "");
    if (more && !is_host) {
        info_message("also matching:");
        tell(choice, at + 1, OTHERS_TOLD, matches);
    }
    return STATUS_DONE;
}

/* ---- Its sources ---- */

struct sources {
    const struct choice *choice;
    char root[PATH_MAX]; /* the image names its files below this */
    struct source_texts *texts;
    struct intern known;
    unsigned missing;
    const char *one_missing;
};

static void write_source(const struct sources *sources, const char *name, const char *text,
                         size_t size)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(name, '/');
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - name) : 0, name);
    int at = make_below(sources->choice->view.directory, directory);
    int fd = at < 0 ? -1
                    : openat(at, slash ? slash + 1 : name,
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)!write(fd, text, size);
        close(fd);
    }
    descriptor_close(at);
}

static void fetch(struct sources *sources, const char *name)
{
    size_t size = strlen(sources->root);
    char *text = NULL;
    size_t length = 0;
    uint32_t count = sources->known.count;
    if (size && text_begins(name, sources->root) && name[size] == '/') {
        name += size + 1;
    }
    const char *known = intern(&sources->known, name);
    if (!known || sources->known.count == count || name[0] == '/' || strstr(name, "..")) {
        return; /* there already, or no Java source */
    }
    if (source_texts_read(sources->texts, name, &text, &length) == 0 && text) {
        write_source(sources, name, text, length);
    } else {
        sources->missing++;
        sources->one_missing = known;
    }
    free(text);
}

struct range {
    uint64_t start, end;
};

/* Where code of that name is. perf inject's files hold one function each, of whatever name; an
 * image of jdtool's holds all. Their number. */
static uint32_t find_ranges(const struct elf_file *file, const char *name, struct range **ranges)
{
    GElf_Shdr header;
    GElf_Sym symbol;
    size_t size;
    uint32_t count = 0;
    uint32_t room = 0;
    uint32_t functions = 0;
    struct range last = {0};
    Elf_Scn *section = elf_file_section(file, ".symtab", &size);
    Elf_Data *data = section && gelf_getshdr(section, &header) ? elf_getdata(section, NULL) : NULL;
    for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
        const char *its = elf_strptr(file->elf, header.sh_link, symbol.st_name);
        if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || !its) {
            continue;
        }
        functions++;
        last = (struct range){symbol.st_value, symbol.st_value + symbol.st_size};
        if (strcmp(its, name) == 0 && array_reserve(ranges, count, &room, sizeof **ranges) == 0) {
            (*ranges)[count++] = last;
        }
    }
    if (count == 0 && functions == 1 && array_reserve(ranges, count, &room, sizeof **ranges) == 0) {
        (*ranges)[count++] = last;
    }
    return count;
}

static void fetch_rows(struct sources *sources, Dwarf *dwarf, const struct range *ranges,
                       uint32_t count)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    Dwarf_Lines *rows;
    size_t row_count;
    while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
        if (dwarf_getsrclines(&die, &rows, &row_count) != 0) {
            continue;
        }
        for (size_t i = 0; i < row_count; i++) {
            Dwarf_Line *row = dwarf_onesrcline(rows, i);
            Dwarf_Addr address;
            const char *name =
                row && dwarf_lineaddr(row, &address) == 0 ? dwarf_linesrc(row, NULL, NULL) : NULL;
            for (uint32_t k = 0; name && k < count; k++) {
                if (address >= ranges[k].start && address < ranges[k].end) {
                    fetch(sources, name);
                }
            }
        }
    }
}

static void fetch_all(struct sources *sources, const char *path)
{
    struct elf_file file;
    struct range *ranges = NULL;
    if (elf_file_open(-1, path, &file) != OBJECT_SOUND) {
        return;
    }
    uint32_t count = find_ranges(&file, sources->choice->symbol, &ranges);
    Dwarf *dwarf = dwarf_begin_elf(file.elf, DWARF_C_READ, NULL);
    if (dwarf) {
        fetch_rows(sources, dwarf, ranges, count);
        dwarf_end(dwarf);
    }
    free(ranges);
    elf_file_close(&file);
}

static char *source_places(const struct choice *choice)
{
    char held[32];
    snprintf(held, sizeof held, "/proc/self/fd/%d", choice->view.held);
    return opened_profile_has(choice->view.profile, "src")
               ? path_list_with(choice->source_path, held, "src")
               : strdup(choice->source_path ? choice->source_path : "");
}

/* In a process that may do what perf may. */
static int fetch_sources(void *context)
{
    const struct choice *choice = context;
    struct sources sources = {.choice = choice};
    char path[PATH_MAX];
    char *places = source_places(choice);
    (void)opened_profile_get(choice->view.profile, "source_root", sources.root, PATH_MAX);
    if (!places || source_texts_open(*places ? places : NULL, &sources.texts) != 0) {
        return STATUS_FAILED;
    }
    const struct perf_files *files = choice->view.files;
    for (const char *name = NULL; files && (name = perf_files_next(files, name));) {
        (void)source_texts_add_jdk(sources.texts, &(struct module){.path = name});
    }
    if (snprintf(path, sizeof path, "/proc/self/fd/%d/%s", choice->view.held, choice->file) <
        (int)sizeof path) {
        fetch_all(&sources, path);
    }
    if (sources.missing) {
        info_message("no source for %u files, such as %s: use --source-path, or install the JDK's "
                     "sources (Debian: openjdk-N-source, for JDK N)",
                     sources.missing, sources.one_missing);
    }
    return STATUS_DONE;
}

/* ---- Showing it ---- */

struct shown {
    bool all;
    unsigned pieces;
};

/* "Percent |" begins a piece of code. */
static bool print_line(void *context, char *line)
{
    struct shown *shown = context;
    const char *at = line + strspn(line, " ");
    if (text_begins(at, "Percent")) {
        at += strlen("Percent");
        if (at[strspn(at, " ")] == '|' && shown->pieces++ && !shown->all) {
            return false;
        }
    }
    return puts(line) >= 0;
}

/* Above the file is how its directories are called there; perf splices the prefix into a line for a
 * shell, where a directory's name would be run: a dot stands for it. */
static void add_prefix(const struct choice *choice, struct words *words)
{
    char root[PATH_MAX];
    char number[16];
    unsigned slashes = 0;
    if (!opened_profile_get(choice->view.profile, "source_root", root, sizeof root) || !root[0]) {
        return;
    }
    for (const char *at = root; *at; at++) {
        slashes += *at == '/';
    }
    snprintf(number, sizeof number, "%u", slashes);
    WORDS_ADD(words, "--prefix", ".", "--prefix-strip", number);
}

static int show(struct choice *choice, char *const *more)
{
    struct words words = {0};
    struct shown shown = {.all = choice->all};
    int says = memfd_create("perf", MFD_CLOEXEC);
    WORDS_ADD(&words, "--stdio", "--dsos", choice->file, "-s", choice->symbol);
    words_add_list(&words, (const char *const *)more);
    if (choice->no_source) {
        WORDS_ADD(&words, "--no-source");
    }
    add_prefix(choice, &words);
    int status = perf_view_read(&choice->view, "annotate", &words, print_line, &shown, says);
    (void)fflush(stdout);
    if (status) {
        char *said = perf_words(says);
        fputs(said ? said : "", stderr);
        free(said);
        error_message("perf annotate failed for %s", choice->symbol);
        status = STATUS_FAILED;
    }
    descriptor_close(says);
    return status;
}

/* ---- All of it ---- */

static int parse(const struct look *look, struct choice *choice)
{
    for (uint32_t i = 1; i < look->arguments.count; i++) {
        const char *word = look->arguments.list[i];
        choice->all |= strcmp(word, "--all") == 0;
        choice->no_source |= strcmp(word, "--no-source") == 0;
        if (strcmp(word, "--all") != 0 && strcmp(word, "--no-source") != 0) {
            return wrong_usage(look->verb, "perf annotate has no option %s%s", word,
                               look->verb->hint);
        }
    }
    return STATUS_DONE;
}

static int choose_and_show(struct choice *choice, char *const *more)
{
    int status = list_symbols(choice);
    status = status ? status : choose(choice);
    if (!status &&
        (mkdirat(choice->view.scratch, "src", 0755) != 0 ||
         (choice->view.directory = openat(choice->view.scratch, "src",
                                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)) {
        failed_to(-errno, "make a directory for sources");
        status = STATUS_FAILED;
    }
    if (!status && choice->view.drop) {
        (void)!fchown(choice->view.directory, choice->view.uid, choice->view.gid);
    }
    if (!status && !choice->no_source) {
        (void)perf_view_work(&choice->view, fetch_sources, choice);
    }
    return status ? status : show(choice, more);
}

int annotate_by_perf(struct look *look, const char *given, const char *method)
{
    struct choice choice = {.method = method, .source_path = look->source_path};
    char *none[] = {NULL};
    char **more = look->more_count ? look->more : none;
    int status = parse(look, &choice);
    if (!status && !program_exists("objdump")) {
        error_message(
            "failed to find objdump, which perf annotate needs: apt-get install binutils");
        status = STATUS_FAILED;
    }
    if (status) {
        return status;
    }
    status = perf_view_open(&choice.view, look, given, more);
    if (!status) {
        perf_view_allow(&choice.view, choice.source_path);
        status = choose_and_show(&choice, more);
    }
    for (uint32_t i = 0; i < choice.count; i++) {
        free(choice.symbols[i].file);
        free(choice.symbols[i].name);
    }
    free(choice.symbols);
    perf_view_close(&choice.view);
    return status;
}
