/*
 * Purpose: the fields of a heap profile's file: those of pprof's profile.proto, and Stook's own,
 * which are numbers that profile.proto does not use. Stook's are structures as this machine has
 * them in memory; all that the library runs on are little-endian, and lay them out alike.
 * Place: the writer in the library, and the command, which reads and writes such files.
 */
#ifndef STOOK_PROFILE_FILE_H
#define STOOK_PROFILE_FILE_H

#include <stdint.h>
#include "profile/profile.h"

enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION,
       PROFILE_FUNCTION, PROFILE_STRING, PROFILE_TIME = 9, PROFILE_DURATION = 10,
       PROFILE_PERIOD_TYPE = 11, PROFILE_PERIOD, PROFILE_COMMENT, PROFILE_DEFAULT_TYPE,
       PROFILE_SESSION = 100, PROFILE_PAIR };
enum { VALUE_TYPE = 1, VALUE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL, SAMPLE_STOOK = 100 };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER, LABEL_UNIT };
enum { MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE, MAPPING_BUILD,
       MAPPING_HAS_FUNCTIONS, MAPPING_HAS_FILES, MAPPING_HAS_LINES, MAPPING_HAS_INLINED };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE,
       LOCATION_OWNER = 100, LOCATION_HEADERS };        /* of the command: whose a frame is */
enum { LINE_FUNCTION = 1, LINE_NUMBER };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };
enum { PAIR_BORN = 1, PAIR_DIED, PAIR_VALUES };

/* As enum stook_profile_kind has them, objects before bytes. */
#define STOOK_PROFILE_FILE_TYPES \
        { "alloc_objects", "alloc_space", "inuse_objects", "inuse_space", \
          "peak_objects", "peak_space", "growth_objects", "growth_space" }
#define STOOK_PROFILE_FILE_DEFAULT "peak_space"
#define STOOK_PROFILE_FILE_VERSION 1

struct stook_profile_file_session {
        uint32_t version, process;
        uint64_t ns, peak_ns, mark_ns;  /* since the start; 0: there was none */
        uint64_t lost, pairs_lost;
        uint64_t lifetimes;             /* 1: pairs were kept */
};

struct stook_profile_file_sample {
        struct {
                uint64_t samples;
                double   objects_variance, bytes_variance;
        } values[STOOK_PROFILE_KINDS];
        struct stook_profile_windows windows;
};

struct stook_profile_file_pair {
        uint64_t samples, objects, bytes, elsewhere;    /* but for samples in parts */
        uint64_t lives[STOOK_PROFILE_LIVES];
};

#endif
