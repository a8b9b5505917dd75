/*
 * libcurl, loaded when something is to be pushed: no other verb pays for it and its TLS, and jdtool
 * runs where it is not installed.
 */
#ifndef JD_TOOL_WATCH_CURL_H
#define JD_TOOL_WATCH_CURL_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

struct curl {
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_easy_reset) *easy_reset;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_multi_init) *multi_init;
    __typeof__(curl_multi_cleanup) *multi_cleanup;
    __typeof__(curl_multi_add_handle) *multi_add_handle;
    __typeof__(curl_multi_remove_handle) *multi_remove_handle;
    __typeof__(curl_multi_perform) *multi_perform;
    __typeof__(curl_multi_poll) *multi_poll;
    __typeof__(curl_multi_info_read) *multi_info_read;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
};

/* NULL after a message: it is not installed, or older than 7.66. */
const struct curl *curl_load(void);

#endif
