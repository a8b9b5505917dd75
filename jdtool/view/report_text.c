#include "jdtool/view/report_text.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/base/tree.h"
#include "jdtool/profile/method_tallies.h"
#include "jdtool/view/cells.h"
#include "jdtool/view/method_match.h"
#include "jdtool/view/report_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define WIDTH_MIN   60
#define AT_MAX      32   /* columns of FILE:LINE; a quarter of the row at most */
#define RAN_MAX     20   /* of how a method ran; a sixth */
#define SHARES      18   /* of both shares and the blanks behind them */
#define TREE_SHARE  0.01 /* branches that took less of their method are left out */
#define TREE_INDENT 24   /* levels; deeper ones are not indented further */
#define NEAREST     5    /* names offered for one that fits none */
#define HOT_SHARE   0.05
#define WARM_SHARE  0.005

struct view {
    const struct profile *profile;
    const struct report_look *look;
    struct packed_output *output;
    uint32_t event;
    struct profile_sum sum; /* of that event */
};

/* ---- Cells ---- */

static void put_share(const struct view *v, uint64_t weight)
{
    double share = v->sum.weight ? (double)weight / (double)v->sum.weight : 0;
    const char *color = !v->look->colors      ? NULL
                        : share >= HOT_SHARE  ? "\033[31m"
                        : share >= WARM_SHARE ? "\033[32m"
                                              : NULL;
    packed_output_printf(v->output, "%s%7.2f%%%s", color ? color : "", 100 * share,
                         color ? "\033[0m" : "");
}

static void begin_table(const struct view *v, const char *what)
{
    const struct recorded_event *event = &v->profile->recording->events[v->event];
    char weight[TEXT_SIZE_MAX];
    bool has_unit = text_weight(v->sum.weight, event->unit, weight);
    packed_output_printf(v->output, "%s: %" PRIu64 " samples, %s%s%s%s%s\n", event->name,
                         v->sum.samples, weight, has_unit ? "" : " ", has_unit ? "" : event->unit,
                         *what ? ". " : "", what);
}

/* The line below a table that is cut. */
static void put_rest(const struct view *v, uint32_t left_out, const char *what)
{
    if (left_out) {
        packed_output_printf(v->output, "%*s… %" PRIu32 " more %s: --limit 0 shows all\n", SHARES,
                             "", left_out, what);
    }
}

/* ---- Methods and lines ---- */

static int put_methods(const struct view *v, const struct method_tallies *t, bool by_line)
{
    struct report_table rows;
    int err = report_table_make(t, v->event, by_line, &rows);
    uint32_t total = err ? 0 : rows.count;
    uint32_t shown = v->look->limit && v->look->limit < total ? v->look->limit : total;
    uint32_t at_width = 2, ran_width = 3;
    uint32_t width = v->look->width > WIDTH_MIN ? v->look->width : WIDTH_MIN;
    uint32_t at_max = width / 4 < AT_MAX ? width / 4 : AT_MAX;
    uint32_t ran_max = width / 6 < RAN_MAX ? width / 6 : RAN_MAX;
    char at[CELL_MAX], ran[CELL_MAX], name[CELL_MAX];

    /* Twice: the first time for how wide the columns are. */
    for (int pass = 0; !err && pass < 2; pass++) {
        uint32_t name_width = width - SHARES - at_width - ran_width - 4;
        if (pass == 1) {
            begin_table(v, "");
            packed_output_printf(v->output, "%8s%8s  %-*s  %-*s  %s\n", "SELF", "TOTAL",
                                 (int)name_width, "METHOD", (int)at_width, "AT", "RAN");
        }
        for (uint32_t i = 0; i < shown; i++) {
            struct report_row row = report_table_at(&rows, i);
            report_row_place(&rows, &row, at);
            report_row_ran(&rows, i, ran);
            if (pass == 0) {
                uint32_t size = cell_columns(at);
                at_width = size > at_width ? (size < at_max ? size : at_max) : at_width;
                size = cell_columns(ran);
                ran_width = size > ran_width ? (size < ran_max ? size : ran_max) : ran_width;
                continue;
            }
            put_share(v, row.self);
            put_share(v, row.total);
            packed_output_text(v->output, "  ");
            cell_put(v->output,
                     cell_fit_name(v->profile->functions[row.function].name, name_width, name),
                     name_width, true);
            packed_output_text(v->output, "  ");
            cell_fit_place(at, at_width);
            cell_put(v->output, at, at_width, *ran);
            packed_output_text(v->output, *ran ? "  " : "");
            cell_put(v->output, ran, ran_width, false);
            packed_output_text(v->output, "\n");
        }
    }
    put_rest(v, total - shown, by_line ? "lines" : "methods");
    report_table_free(&rows);
    return err;
}

/* ---- Threads ---- */

static int put_threads(const struct view *v)
{
    const struct profile *profile = v->profile;
    uint32_t total;
    struct report_thread *rows = report_threads(profile, v->event, &total);
    if (!rows) {
        return -ENOMEM;
    }
    uint32_t shown = v->look->limit && v->look->limit < total ? v->look->limit : total;
    begin_table(v, "");
    packed_output_printf(v->output, "%8s%9s  %9s  THREAD\n", "SHARE", "SAMPLES", "TID");
    for (uint32_t i = 0; i < shown; i++) {
        const struct profile_track *track = &profile->tracks[rows[i].track];
        put_share(v, rows[i].weight);
        char tid[12] = "-"; /* a group is no thread */
        if (!(track->tid & RESOLVED_OWN_TID)) {
            snprintf(tid, sizeof tid, "%" PRIu32, track->tid);
        }
        packed_output_printf(v->output, "%9" PRIu64 "  %9s  ", rows[i].samples, tid);
        cell_put(v->output, profile->threads[track->thread].comm, v->look->width, false);
        packed_output_text(v->output, "\n");
    }
    put_rest(v, total - shown, "threads");
    free(rows);
    return 0;
}

/* ---- Callers and callees of a method, as a tree ---- */

struct branch {
    uint32_t parent, function; /* parent: TREE_ROOT of the method itself */
    uint64_t weight, self;     /* self: nothing further on the stack */
};

struct tree {
    struct branch *list;
    uint32_t count, room;
    struct hash_map map; /* by parent and function */
};

static int add_branch(struct tree *tree, uint32_t parent, uint32_t function, uint64_t weight,
                      uint32_t *id)
{
    *id = tree_child(&tree->list, &tree->count, &tree->room, sizeof *tree->list, TREE_MOST,
                     &tree->map, parent, function);
    if (*id == HASH_MAP_NONE) {
        return -ENOMEM;
    }
    tree->list[*id].weight += weight;
    return 0;
}

/* A sample's functions, innermost first, in an array that grows. */
struct chain {
    uint32_t *functions;
    uint32_t count, room;
};

static int read_chain(const struct profile *profile, uint32_t node, struct chain *chain)
{
    chain->count = 0;
    for (; node != PROFILE_NONE; node = profile->nodes[node].parent) {
        const struct profile_location *location =
            &profile->locations[profile->nodes[node].location];
        for (uint32_t k = 0; k < location->line_count; k++) {
            if (ARRAY_RESERVE(chain->functions, chain->count, chain->room)) {
                return -ENOMEM;
            }
            chain->functions[chain->count++] = profile->lines[location->first_line + k].function;
        }
    }
    return 0;
}

/* Callers go from the innermost call of the method outwards, callees from its outermost inwards, so
 * that a recursion counts once. */
static int add_chain(const struct view *v, const struct chain *chain, const bool *is_wanted,
                     uint64_t weight, struct tree *tree)
{
    bool outwards = v->look->rows == REPORT_CALLERS;
    uint32_t id = PROFILE_NONE;
    for (uint32_t i = 0; i < chain->count; i++) {
        uint32_t at = outwards ? i : chain->count - 1 - i;
        if (id == PROFILE_NONE && !is_wanted[chain->functions[at]]) {
            continue;
        }
        if (add_branch(tree, id, chain->functions[at], weight, &id)) {
            return -ENOMEM;
        }
    }
    if (id != PROFILE_NONE) {
        tree->list[id].self += weight;
    }
    return 0;
}

static int compare_branches(const void *a, const void *b, void *argument)
{
    const struct tree *tree = argument;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct branch *first = &tree->list[x], *second = &tree->list[y];
    return ORDER(first->parent, second->parent) ?: ORDER(second->weight, first->weight) ?: ORDER(x, y);
}

/* Branches below one another, the heaviest first; one that goes on as one is not indented. */
static void put_branches(const struct view *v, const struct tree *tree, const uint32_t *order,
                         const uint32_t *first)
{
    uint64_t least = 0; /* of a branch's weight */
    uint32_t shown = 0;
    uint32_t indent = 0;
    struct level {
        uint32_t at, indent; /* in the order */
    } *levels = malloc(((size_t)tree->count + 1) * sizeof *levels);
    uint32_t depth = 0;
    if (!levels) {
        packed_output_fail(v->output, -ENOMEM);
        return;
    }
    levels[depth++] = (struct level){first[tree->count], 0};
    while (depth > 0) {
        struct level *level = &levels[depth - 1];
        uint32_t parent = depth > 1 ? order[levels[depth - 2].at - 1] : PROFILE_NONE;
        const struct branch *branch =
            level->at < tree->count ? &tree->list[order[level->at]] : NULL;
        if (!branch || branch->parent != parent || (depth > 1 && branch->weight < least)) {
            depth--;
            continue;
        }
        if (v->look->limit && shown == v->look->limit) {
            packed_output_printf(v->output, "%10s… more: --limit 0 shows all\n", "");
            break;
        }
        indent = level->indent;
        char name[CELL_MAX];
        uint32_t columns = 2 * (indent < TREE_INDENT ? indent : TREE_INDENT);
        uint32_t width = v->look->width > WIDTH_MIN ? v->look->width : WIDTH_MIN;
        put_share(v, branch->weight);
        packed_output_printf(v->output, "  %*s", (int)columns, "");
        cell_put(
            v->output,
            cell_fit_name(v->profile->functions[branch->function].name, width - 10 - columns, name),
            width - 10 - columns, false);
        packed_output_text(v->output, "\n");
        shown++;
        if (depth == 1) {
            least = (uint64_t)((double)branch->weight * TREE_SHARE);
        }
        uint32_t id = order[level->at++];
        uint32_t child = first[id];
        bool goes_on =
            child < tree->count && depth > 1 && tree->list[order[child]].weight == branch->weight;
        levels[depth++] = (struct level){child, indent + !goes_on};
    }
    free(levels);
}

static int put_tree(const struct view *v, const bool *is_wanted)
{
    const struct profile *profile = v->profile;
    struct tree tree = {0};
    struct chain chain = {0};
    int err = 0;
    for (uint32_t i = 0; !err && i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        if (sample->event == v->event && sample->node != PROFILE_NONE) {
            err = read_chain(profile, sample->node, &chain);
            err = err ? err : add_chain(v, &chain, is_wanted, sample->weight, &tree);
        }
    }
    uint32_t *order = array_sorted(tree.count, compare_branches, &tree);
    uint32_t *first = calloc((size_t)tree.count + 1, sizeof *first);
    if (!err && order && first) {
        for (uint32_t i = 0; i <= tree.count; i++) {
            first[i] = tree.count;
        }
        for (uint32_t i = tree.count; i-- > 0;) {
            uint32_t parent = tree.list[order[i]].parent;
            first[parent == PROFILE_NONE ? tree.count : parent] = i;
        }
        begin_table(v, v->look->rows == REPORT_CALLERS ? "Below each method its callers"
                                                       : "Below each method what it called");
        put_branches(v, &tree, order, first);
    } else {
        err = -ENOMEM;
    }
    free(order);
    free(first);
    free(chain.functions);
    free(tree.list);
    hash_map_free(&tree.map);
    return err;
}

/* By function: whether it is meant. NULL after a message; *err tells which. */
static bool *find_wanted(const struct view *v, int *err)
{
    uint32_t *functions;
    uint32_t count = method_match_all(v->profile, v->look->method, &functions);
    bool *wanted = calloc((size_t)v->profile->function_count + 1, sizeof *wanted);
    *err = functions && wanted ? 0 : -ENOMEM;
    for (uint32_t i = 0; !*err && i < count; i++) {
        wanted[functions[i]] = true;
    }
    if (!*err && count == 0) {
        uint32_t nearest[NEAREST];
        count = method_match_nearest(v->profile, v->look->method, nearest, NEAREST);
        error_message("failed to find '%s': no sampled method has this in its name%s",
                      v->look->method, count ? ". The nearest are:" : "");
        for (uint32_t i = 0; i < count; i++) {
            fputs("    ", stderr);
            text_print(stderr, v->profile->functions[nearest[i]].name);
            fputc('\n', stderr);
        }
        *err = -ENOENT;
    }
    free(functions);
    if (*err) {
        free(wanted);
        wanted = NULL;
    }
    return wanted;
}

int report_text_write(const struct profile *profile, const struct report_look *look,
                      struct packed_output *output)
{
    struct view v = {.profile = profile, .look = look, .output = output};
    struct method_tallies tallies = {0};
    bool is_tree = look->rows == REPORT_CALLERS || look->rows == REPORT_CALLEES;
    bool is_table = look->rows == REPORT_METHODS || look->rows == REPORT_LINES;
    int err = is_table ? method_tallies_make(profile, &tallies) : 0;
    bool *wanted = is_tree ? find_wanted(&v, &err) : NULL;
    bool is_first = true;
    for (v.event = 0; !err && v.event < profile->recording->event_count; v.event++) {
        v.sum = profile_sum(profile, v.event);
        if (v.sum.samples == 0) {
            continue;
        }
        packed_output_text(output, is_first ? "" : "\n");
        is_first = false;
        err = is_tree ? put_tree(&v, wanted)
              : look->rows == REPORT_THREADS
                  ? put_threads(&v)
                  : put_methods(&v, &tallies, look->rows == REPORT_LINES);
    }
    free(wanted);
    method_tallies_free(&tallies);
    return err;
}
