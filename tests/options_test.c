/* Every option and value of the agent, and the messages for wrong ones. */
#include "test.h"

#include "agent/session/options.h"

#include "writer/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct options options;
static char error[OPTIONS_ERROR_MAX];

static void accept(const char *text)
{
    if (options_parse(text, &options, error) != 0) {
        fail_msg("'%s' is refused: %s", text, error);
    }
    assert_string_equal(error, "");
}

static void refuse(const char *text, const char *culprit)
{
    if (options_parse(text, &options, error) == 0) {
        fail_msg("'%s' is accepted", text);
    }
    if (!strstr(error, culprit)) {
        fail_msg("'%s': the message '%s' does not say '%s'", text, error, culprit);
    }
}

TEST(nothing_given_means_the_defaults)
{
    const char *const nothing[] = {NULL, ""};
    for (size_t i = 0; i < 2; i++) {
        accept(nothing[i]);
        assert_int_equal(options.command, COMMAND_START);
        assert_int_equal(options.modes, MODE_JITDUMP);
        assert_string_equal(options.dir, "");
        assert_int_equal(options.names, NAMES_JAVA);
        assert_int_equal(options.inlines, INLINE_FULL);
        assert_true(options.lines && options.code);
        assert_false(options.tier || options.normalize || options.methods || options.samply);
        assert_false(options.tsc || options.strict);
        assert_int_equal(options.unfold.mode, UNFOLD_OFF);
        assert_int_equal(options.max_bytes, 0);
        assert_int_equal(options.duration, 0);
        assert_int_equal(options.verbose, MESSAGE_WARNING);
    }
}

TEST(every_key_is_understood)
{
    accept("mode=map+jitdump+itt,dir=/tmp/x y,names=short,tier=on,normalize,inline=leaf,lines=off,"
           "code=off,unfold=all,methods,samply=on,max=2G,duration=30,verbose=4,"
           "strict=on,start,suffixes,sourcepos");
    assert_int_equal(options.modes, MODE_MAP | MODE_JITDUMP | MODE_ITT);
    assert_string_equal(options.dir, "/tmp/x y");
    assert_int_equal(options.names, NAMES_SHORT);
    assert_true(options.tier && options.normalize && options.methods && options.samply);
    assert_int_equal(options.inlines, INLINE_LEAF);
    assert_false(options.lines || options.code);
    assert_int_equal(options.unfold.mode, UNFOLD_ALL);
    assert_true(options.unfold.suffixes && options.unfold.positions);
    assert_int_equal(options.max_bytes, UINT64_C(2) << 30);
    assert_int_equal(options.duration, 30);
    assert_int_equal(options.verbose, 4);
    assert_true(options.strict);
}

TEST(values_in_all_their_forms)
{
    accept("directory=d");
    assert_string_equal(options.dir, "d");
    accept("dir=a=b"); /* the first '=' counts */
    assert_string_equal(options.dir, "a=b");
    accept("dir=/tmp/\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    accept("dir=..."); /* a name like any other */
    accept("names=jvm");
    assert_int_equal(options.names, NAMES_JVM);
    accept("lines=tree");
    assert_true(options.lines && options.tree_lines);
    accept("lines=on");
    assert_true(options.lines && !options.tree_lines);
    accept("inline=off");
    assert_int_equal(options.inlines, INLINE_OFF);
    accept("max=1");
    assert_int_equal(options.max_bytes, 1);
    accept("max=10k");
    assert_int_equal(options.max_bytes, 10240);
    accept("max=3M");
    assert_int_equal(options.max_bytes, 3 << 20);
    accept("segment=64K");
    assert_int_equal(options.segment, 65536);
    accept("segment=1G,keep=3");
    assert_int_equal(options.keep, 3);
    accept("segment=8M,keep=64M");
    assert_int_equal(options.keep, 0);
    assert_int_equal(options.keep_bytes, 64 << 20);
    accept("reserve=0");
    assert_int_equal(options.reserve, 0);
    accept("max=3m");
    assert_int_equal(options.max_bytes, 3 << 20);
    accept("max=2g");
    assert_int_equal(options.max_bytes, UINT64_C(2) << 30);
    accept("verbose");
    assert_int_equal(options.verbose, MESSAGE_INFO);
    accept("verbose=0");
    assert_int_equal(options.verbose, MESSAGE_ERROR);
#ifdef __x86_64__
    accept("clock=tsc");
    assert_true(options.tsc);
#endif
}

TEST(words_of_perf_map_agent)
{
    accept("unfold");
    assert_int_equal(options.unfold.mode, UNFOLD_LEAF);
    accept("mode=map,unfoldall,msig,dottedclass,cleanclass,sourcepos");
    assert_int_equal(options.unfold.mode, UNFOLD_ALL);
    assert_int_equal(options.names, NAMES_JAVA);
    assert_true(options.unfold.positions);
    accept("unfoldsimple");
    assert_int_equal(options.unfold.mode, UNFOLD_SIMPLE);
}

TEST(commands)
{
    accept("stop");
    assert_int_equal(options.command, COMMAND_STOP);
    accept("status,verbose=3");
    assert_int_equal(options.verbose, 3);
    assert_int_equal(options.command, COMMAND_STATUS);
    assert_string_equal(options.status_path, "");
    accept("status=/tmp/answer");
    assert_int_equal(options.command, COMMAND_STATUS);
    assert_string_equal(options.status_path, "/tmp/answer");
    accept("start,dir=x");
    assert_int_equal(options.command, COMMAND_START);
    accept("stop"); /* and leaves the session's messages as they are */
    assert_int_equal(options.verbose, -1);
}

TEST(wrong_options_name_the_culprit)
{
    static const struct {
        const char *text, *culprit;
    } wrong[] = {
        {"bogus", "unknown option 'bogus'"},
        {"bogus=1", "unknown option 'bogus'"},
        {"bogus", "mode, dir, directory"}, /* what is allowed */
        {"Mode=map", "unknown option 'Mode'"},
        {" mode=map", "unknown option ' mode'"},
        {"dir=/a,b", "a value cannot contain a comma"},
        {"unfoldalll", "unfoldalll"},
        {"=x", "unknown option ''"},
        {"mode=perf", "'perf' for option 'mode'; allowed: jitdump, map, itt"},
        {"mode=map+", "'map+'"},
        {"mode=map+map", "'map+map'"},
        {"mode=", "'' for option 'mode'"},
        {"mode", "option 'mode' needs a value"},
        {"mode=jitdumpjitdumpjitdumpjitdump", "option 'mode'"},
        {"dir", "option 'dir'"},
        {"dir=", "option 'dir'"},
        {"dir=/tmp/../etc", "'..' is not allowed"},
        {"dir=..", "'..' is not allowed"},
        {"dir=a/..", "'..' is not allowed"},
        {"names=Java", "'Java' for option 'names'; allowed: java, short, jvm"},
        {"tier=yes", "'yes' for option 'tier'; allowed: on, off"},
        {"inline=on", "option 'inline'; allowed: full, leaf, off"},
        {"lines=0", "option 'lines'"},
        {"code=", "option 'code'"},
        {"unfold=some", "option 'unfold'; allowed: off, leaf, all, simple"},
        {"unfoldall=off", "option 'unfoldall'"},
        {"clock=rdtsc", "option 'clock'; allowed: monotonic, tsc"},
        {"max=0", "option 'max'"},
        {"segment=63K", "option 'segment'"},
        {"segment", "option 'segment' needs a value"},
        {"segment=1M,keep=0", "option 'keep'"},
        {"segment=1M,keep=0M", "option 'keep'"},
        {"segment=1M,keep=-1", "option 'keep'"},
        {"keep=3", "option 'keep' needs 'segment'"},
        {"segment=1M,max=2M", "contradict"},
        {"segment=1M,samply", "contradict"},
        {"reserve=much", "option 'reserve'"},
        {"reserve", "option 'reserve' needs a value"},
        {"max=-1", "option 'max'"},
        {"max=2GB", "option 'max'"},
        {"max=99999999999999999999", "option 'max'"},
        {"max=18446744073709551615G", "option 'max'"},
        {"max=G", "option 'max'"},
        {"max= 1", "option 'max'"},
        {"duration=0", "option 'duration'"},
        {"duration=1.5", "option 'duration'"},
        {"duration=5s", "option 'duration'"},
        {"duration=99999999999", "option 'duration'"},
        {"verbose=6", "option 'verbose'; allowed: 0 to 5"},
        {"verbose=off", "option 'verbose'"},
        {"strict=", "option 'strict'"},
        {"stop=now", "option 'stop'"},
        {"status=relative", "option 'status'"},
        {"status=/a/../b", "'..' is not allowed"},
        {"start=off", "option 'start'"},
        {"dir=a,dir=b", "'dir' is given twice"},
        {"dir=a,directory=b", "'dir' and 'directory' contradict each other"},
        {"start,stop", "'start' and 'stop' contradict each other"},
        {"stop,status", "'stop' and 'status' contradict each other"},
        {"unfold,unfoldall", "'unfold' and 'unfoldall' contradict each other"},
        {"lease", "'lease' needs a value"},
        {"lease=x", "option 'lease'"},
        {"stop,dir=x", "'dir' has no meaning with 'stop'"},
        {"status,lease=/x", "'lease' has no meaning with 'status'"},
        {"status,mode=map", "'mode' has no meaning with 'status'"},
        {",", "an empty option"},
        {"tier,", "an empty option"},
        {",tier", "an empty option"},
        {"tier,,samply", "an empty option"},
        {"dir=a\nb", "a newline"},
        {"dir=a\tb", "control character 0x09"},
        {"dir=a\x7f", "control character 0x7f"},
        {"dir=a\xff", "byte 0xff at position 5 is not valid UTF-8"},
        {"dir=\xc0\x80", "not valid UTF-8"},
        {"dir=\xed\xa0\x80", "not valid UTF-8"},
        {"dir=\xf4\x90\x80\x80", "not valid UTF-8"},
        {"dir=\xe2\x82", "not valid UTF-8"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        refuse(wrong[i].text, wrong[i].culprit);
    }
}

/* "KEY=" and then that many letters. */
static char *long_option(const char *key, size_t n)
{
    size_t k = strlen(key);
    char *text = malloc(k + 1 + n + 1);
    assert_non_null(text);
    memcpy(text, key, k);
    text[k] = '=';
    memset(text + k + 1, 'x', n);
    text[k + 1 + n] = '\0';
    return text;
}

TEST(lengths_have_a_limit)
{
    static const char *const keys[] = {"dir",   "mode",    "names",    "source-path",
                                       "bogus", "verbose", "duration", "max"};
    static const size_t lengths[] = {PATH_MAX - 1, PATH_MAX, 3 * PATH_MAX, 1000000};
    for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
        for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
            char *text = long_option(keys[k], lengths[i]);
            assert_int_equal(options_parse(text, &options, error), -EINVAL);
            free(text);
        }
    }
    char *key = long_option("dir", 100000);
    memset(key, 'k', 100000); /* no '=' for a long time */
    refuse(key, "longer than");
    free(key);
}

TEST(the_environment_sets_the_clock)
{
    setenv("JITDUMP_USE_ARCH_TIMESTAMP", "0", 1);
    accept("");
    assert_false(options.tsc);
#ifdef __x86_64__
    setenv("JITDUMP_USE_ARCH_TIMESTAMP", "1", 1);
    accept("");
    assert_true(options.tsc);
    accept("clock=monotonic"); /* an option is nearer than the environment */
    assert_false(options.tsc);
#endif
    unsetenv("JITDUMP_USE_ARCH_TIMESTAMP");
}

TEST(paths_of_the_environment_are_checked)
{
    assert_int_equal(options_check_path("HOME", "/home/me", error), 0);
    assert_int_equal(options_check_path("HOME", "/home/a..b/..c/d..", error), 0);
    assert_int_equal(options_check_path("HOME", "/home/../me", error), -EINVAL);
    assert_non_null(strstr(error, "HOME"));
    assert_int_equal(options_check_path("HOME", "/a\nb", error), -EINVAL);
    char *text = long_option("/home", PATH_MAX);
    assert_int_equal(options_check_path("HOME", text, error), -EINVAL);
    free(text);
}

TEST(events_are_off_until_they_are_asked_for)
{
    accept("");
    assert_int_equal(options.alloc_bytes, 0);
    assert_int_equal(options.lock_ns, 0);
    accept("alloc,locks");
    assert_int_equal(options.alloc_bytes, 512 * 1024);
    assert_int_equal(options.lock_ns, 1000000);
    accept("alloc=64K,locks=10us");
    assert_int_equal(options.alloc_bytes, 64 * 1024);
    assert_int_equal(options.lock_ns, 10000);
    assert_false(options.log);
    accept("log");
    assert_true(options.log);
    accept("threads");
    assert_true(options.threads);
    assert_false(options.waits);
    accept("threads=waits");
    assert_true(options.threads);
    assert_true(options.waits);
    accept("threads=off");
    assert_false(options.threads);
    assert_false(options.waits);
    accept("alloc=off,locks=off");
    assert_int_equal(options.alloc_bytes, 0);
    assert_int_equal(options.lock_ns, 0);
    refuse("alloc=0", "alloc");
    refuse("alloc=4096M", "alloc");
    refuse("alloc=9999999999", "alloc");
    refuse("alloc=1G", "alloc");
    refuse("locks=0ms", "locks");
    refuse("locks=5", "locks");
    refuse("locks=99999999999s", "locks");
}

TEST_MAIN(NULL, NULL)
