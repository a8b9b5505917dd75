/* One file of a record log: its beginning, its mapping, its end. */
#include "writer/log/record_log_private.h"

#include "writer/message.h"
#include "writer/stamp.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *log_file_suffix(enum record_log_file file)
{
    return file == RECORD_LOG_DUMP ? "dump" : "methods";
}

void log_file_unmap_marker(struct log_file *file)
{
    if (file->marker) {
        munmap(file->marker, file->marker_size);
        file->marker = NULL;
    }
}

/* Nobody reads or runs what it maps. */
int log_file_map_marker(struct log_file *file)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *marker = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file->output.fd, 0);
    if (marker == MAP_FAILED) {
        int error = errno;
        message(MESSAGE_ERROR, "failed to map %s executable, which is how perf finds it: %s%s",
                file->output.path, strerror(error),
                error == EPERM ? "; is its file system mounted noexec?" : "");
        return -error;
    }
    file->marker = marker;
    file->marker_size = size;
    return 0;
}

int log_file_write_header(struct log_file *file)
{
    return output_file_append(&file->output, file->header.bytes, file->header.size);
}

/* Stamps go back in time where code is told of late; the end is later than the latest. */
void log_file_note_stamp(struct log_file *file, const void *prefix)
{
    struct jitdump_record record;
    memcpy(&record, prefix, sizeof(record));
    file->last_stamp = record.timestamp > file->last_stamp ? record.timestamp : file->last_stamp;
}

/*
 * Readers take it for the moment when all code ends (samply). Where no place was ever used again
 * the records bear the dump's beginning, so that of the last one is no word of its end.
 */
void log_file_write_end(struct record_log *log, struct log_file *file)
{
    /* 10 s, or some seconds in ticks of a processor. */
    static const uint64_t while_process_ends = UINT64_C(10000000000);
    uint64_t end = stamp_now(log->options.tsc);
    pthread_mutex_lock(&log->lock);
    end += log->process_ends ? while_process_ends : 0;
    pthread_mutex_unlock(&log->lock);
    const struct jitdump_close record = {
        .prefix = {JIT_CODE_CLOSE, sizeof(record),
                   end > file->last_stamp ? end : file->last_stamp + 1},
    };
    if (file->output.fd >= 0) {
        (void)output_file_append(&file->output, &record, sizeof(record));
    }
}

void log_file_close(struct record_log *log, struct log_file *file)
{
    if (file == &log->files[RECORD_LOG_DUMP]) {
        log_file_write_end(log, file);
    }
    log_file_unmap_marker(file);
    output_file_close(&file->output);
    atomic_store(&file->state, LOG_FILE_CLOSED);
}
