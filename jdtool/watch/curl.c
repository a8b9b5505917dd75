#include "jdtool/watch/curl.h"

#include "jdtool/base/message.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static struct curl functions;

static const struct {
    const char *name;
    size_t offset;
} names[] = {
    {"curl_global_init", offsetof(struct curl, global_init)},
    {"curl_easy_init", offsetof(struct curl, easy_init)},
    {"curl_easy_cleanup", offsetof(struct curl, easy_cleanup)},
    {"curl_easy_reset", offsetof(struct curl, easy_reset)},
    {"curl_easy_setopt", offsetof(struct curl, easy_setopt)},
    {"curl_easy_getinfo", offsetof(struct curl, easy_getinfo)},
    {"curl_easy_strerror", offsetof(struct curl, easy_strerror)},
    {"curl_multi_init", offsetof(struct curl, multi_init)},
    {"curl_multi_cleanup", offsetof(struct curl, multi_cleanup)},
    {"curl_multi_add_handle", offsetof(struct curl, multi_add_handle)},
    {"curl_multi_remove_handle", offsetof(struct curl, multi_remove_handle)},
    {"curl_multi_perform", offsetof(struct curl, multi_perform)},
    {"curl_multi_poll", offsetof(struct curl, multi_poll)},
    {"curl_multi_info_read", offsetof(struct curl, multi_info_read)},
    {"curl_slist_append", offsetof(struct curl, slist_append)},
    {"curl_slist_free_all", offsetof(struct curl, slist_free_all)},
};

const struct curl *curl_load(void)
{
    /* The second has Debian's GnuTLS, with the same interface. */
    static const char *const files[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof files / sizeof *files; i++) {
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) {
        error_message("failed to find libcurl, which --push needs: apt-get install libcurl4 "
                      "(Debian, Ubuntu) or libcurl (Fedora, RHEL)");
        return NULL;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *function = dlsym(library, names[i].name);
        if (!function) {
            error_message("failed to use libcurl: it is too old and lacks %s", names[i].name);
            return NULL;
        }
        memcpy((char *)&functions + names[i].offset, &function, sizeof function);
    }
    if (functions.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        error_message("failed to use libcurl: it does not start");
        return NULL;
    }
    return &functions;
}
