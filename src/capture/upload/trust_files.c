/* Which certificate authorities are trusted: those of --ca-file, else of the environment's
 * variables, else of the places where distributions keep theirs, else the built-in table. Files are
 * read here and parsed by deliver/trust.h. */
#include "capture/upload/trust_files.h"
#include "os/file.h"

#include <stdio.h>

enum {
    BUNDLE_MAX_BYTES = 8 << 20,
    PATH_BYTES = 4096,
    FOLDER_FILES_MAX = 1024,
};

static const char *const bundle_variables[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE",
                                               "REQUESTS_CA_BUNDLE"};
enum { VARIABLE_COUNT = sizeof bundle_variables / sizeof bundle_variables[0] };

/* Debian, Alpine with its package, Arch; Alpine's base; Fedora, Amazon Linux; older ones; SUSE;
 * OpenELEC. */
static const char *const bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
};
static const char *const folders[] = {"/etc/ssl/certs", "/etc/pki/tls/certs"};

/* How many it gave; a file that cannot be read gives none. */
static size_t add_file(struct trust *trust, const char *path, struct err *err)
{
    struct buf pem;
    if (!file_read_all(path, BUNDLE_MAX_BYTES, &pem, err)) {
        return 0;
    }
    size_t count = trust_add_pem(trust, buf_slice(&pem), path);
    buf_release(&pem);
    return count;
}

struct folder {
    struct trust *trust;
    const char *path;
    size_t files, count;
};

/* "1a2b3c4d.0": a link that OpenSSL makes to a file that is there under its own name, too. */
static bool is_hash_link(struct str name)
{
    enum { DIGITS = 8 };
    uint64_t value;
    return name.len > DIGITS + 1 && name.ptr[DIGITS] == '.' &&
           str_hex(str_sub(name, 0, DIGITS), &value) &&
           str_u64(str_sub(name, DIGITS + 1, name.len), &value);
}

static void add_of_folder(void *context, const char *name)
{
    struct folder *folder = context;
    char path[PATH_BYTES];
    if (!is_hash_link(str_of(name)) && folder->files++ < FOLDER_FILES_MAX &&
        (size_t)snprintf(path, sizeof path, "%s/%s", folder->path, name) < sizeof path) {
        folder->count += add_file(folder->trust, path, NULL);
    }
}

static size_t add_folder(struct trust *trust, const char *path)
{
    struct folder folder = {.trust = trust, .path = path};
    (void)file_list(path, add_of_folder, &folder, NULL);
    if (folder.count > 0) {
        snprintf(trust->source, sizeof trust->source, "%s", path);
    }
    return folder.count;
}

/* A list with colons, as OpenSSL reads it. */
static size_t add_folders(struct trust *trust, struct str list)
{
    size_t count = 0;
    while (list.len > 0) {
        struct str one = str_cut(&list, ':');
        char path[PATH_BYTES];
        if (one.len > 0 && one.len < sizeof path) {
            snprintf(path, sizeof path, "%.*s", (int)one.len, one.ptr);
            count += add_folder(trust, path);
        }
    }
    return count;
}

static size_t add_named(struct trust *trust, struct str file)
{
    char path[PATH_BYTES];
    if (file.len == 0 || file.len >= sizeof path) {
        return 0;
    }
    snprintf(path, sizeof path, "%.*s", (int)file.len, file.ptr);
    return add_file(trust, path, NULL);
}

static bool load_given(struct trust *trust, const char *path, struct err *err)
{
    struct err why = {0};
    if (add_file(trust, path, &why) > 0) {
        return true;
    }
    if (why.kind != ERR_NONE) {
        return err_set(err, why.kind, why.number, "--ca-file: %s", why.text);
    }
    return err_set(err, ERR_USAGE, 0,
                   "--ca-file: %s contains no usable certificate in PEM", path);
}

bool trust_files_load(struct trust *trust, const char *ca_file,
                      struct str (*get)(void *context, const char *name), void *context,
                      struct err *err)
{
    if (ca_file != NULL) {
        return load_given(trust, ca_file, err);
    }
    size_t count = add_named(trust, get(context, bundle_variables[0]));
    count = count > 0 ? count : add_folders(trust, get(context, "SSL_CERT_DIR"));
    for (size_t i = 1; count == 0 && i < VARIABLE_COUNT; i++) {
        count = add_named(trust, get(context, bundle_variables[i]));
    }
    for (size_t i = 0; count == 0 && i < sizeof bundles / sizeof bundles[0]; i++) {
        count = add_file(trust, bundles[i], NULL);
    }
    for (size_t i = 0; count == 0 && i < sizeof folders / sizeof folders[0]; i++) {
        count = add_folder(trust, folders[i]);
    }
    count = count > 0 ? count : trust_add_built_in(trust);
    return count > 0 ||
           err_set(err, ERR_USAGE, 0, "no certificate authorities; give --ca-file FILE");
}
