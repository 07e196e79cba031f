/* The request that a back end makes of a profile, for tests that send it themselves.
 * backend_request BACKEND FORMAT FILE BODY [KEY=VALUE...]  The body is written to the file BODY,
 * what stands before it as JSON to standard output. Keys: token, service, host, gpid, tenant,
 * path, method, fallback (1: the old address), start and end (nanoseconds), most (bytes that the
 * service takes: the profile is made smaller until it fits), agentless (1), container, inode,
 * external, sequence, tag.NAME, argument.NAME, resource.NAME. */
#include "base/json.h"
#include "capture/upload/shipment.h"

#include <stdio.h>
#include <stdlib.h>

enum { FILE_MAX_BYTES = 256 * 1024 * 1024 };

/* Weak: the program's own, where more of its file is linked. */
__attribute__((weak)) bool http_add(struct http_request *request, struct str name, struct str value,
                                    bool secret)
{
    if (request->header_count == HTTP_HEADERS_MAX) {
        return false;
    }
    request->headers[request->header_count++] = (struct http_header){name, value, secret};
    return true;
}

struct asked {
    struct backend row;
    struct origin origin;
    struct backend_context context;
    struct delivery delivery;
};

static bool fail(const char *what)
{
    fprintf(stderr, "backend_request: %s\n", what);
    return false;
}

static bool read_file(const char *path, struct buf *out)
{
    FILE *file = fopen(path, "rb");
    size_t got = 0;
    buf_init(out, FILE_MAX_BYTES);
    do {
        char *room = file == NULL ? NULL : buf_room(out, 65536);
        got = room == NULL ? 0 : fread(room, 1, 65536, file);
        out->len += got;
    } while (got > 0);
    return file != NULL && fclose(file) == 0;
}

static bool take(struct asked *a, struct str key, struct str value)
{
    struct {
        const char *key;
        struct str *to;
    } texts[] = {
        {"token", &a->context.token}, {"service", &a->origin.service}, {"host", &a->origin.hostname},
        {"tenant", &a->context.tenant}, {"path", &a->context.url.path}, {"method", &a->context.method},
        {"container", &a->origin.container_id}, {"external", &a->context.external_env},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (str_eq(key, str_of(texts[i].key))) {
            *texts[i].to = value;
            return true;
        }
    }
    uint64_t number = 0;
    (void)str_u64(value, &number);
    if (str_eq(key, STR("start"))) {
        a->delivery.start_wall_ns = number;
    } else if (str_eq(key, STR("end"))) {
        a->delivery.end_wall_ns = number;
    } else if (str_eq(key, STR("most"))) {
        a->row.most_bytes = (size_t)number;
    } else if (str_eq(key, STR("agentless"))) {
        a->context.agentless = number != 0;
    } else if (str_eq(key, STR("inode"))) {
        a->origin.cgroup_inode = number;
    } else if (str_eq(key, STR("sequence"))) {
        a->delivery.sequence = number;
    } else if (str_eq(key, STR("fallback"))) {
        a->context.fallback = number != 0;
    } else if (str_eq(key, STR("gpid"))) {
        snprintf(a->context.gpid, sizeof a->context.gpid, "%s", value.ptr);
    } else if (str_starts(key, STR("tag."))) {
        a->origin.tags[a->origin.tag_count++] = (struct fact){str_sub(key, 4, key.len), value};
    } else if (str_starts(key, STR("argument."))) {
        a->origin.arguments[a->origin.argument_count++] =
            (struct fact){str_sub(key, 9, key.len), value};
    } else if (str_starts(key, STR("resource."))) {
        a->origin.resource[a->origin.resource_count++] =
            (struct fact){str_sub(key, 9, key.len), value};
    } else {
        return false;
    }
    return true;
}

static void print_head(const struct http_request *request)
{
    struct buf out;
    buf_init(&out, FILE_MAX_BYTES);
    buf_printf(&out, "{\"method\": \"%s\", \"target\": ", request->method);
    json_text(&out, request->target);
    buf_text(&out, ", \"headers\": [");
    for (size_t i = 0; i < request->header_count; i++) {
        buf_text(&out, i > 0 ? ", [" : "[");
        json_text(&out, request->headers[i].name);
        buf_text(&out, ", ");
        json_text(&out, request->headers[i].value);
        buf_printf(&out, ", %s]", request->headers[i].secret ? "true" : "false");
    }
    buf_text(&out, "]}\n");
    fwrite(out.ptr, 1, out.len, stdout);
    buf_release(&out);
}

static bool write_body(const char *path, struct str body)
{
    FILE *file = fopen(path, "wb");
    bool ok = file != NULL && fwrite(body.ptr, 1, body.len, file) == body.len;
    return (file == NULL || fclose(file) == 0) && ok;
}

static bool make(struct asked *a, const char *path)
{
    struct shipment shipment;
    struct err err = {0};
    shipment_init(&shipment, &a->row, &a->delivery, FILE_MAX_BYTES);
    bool ok = shipment_build(&shipment, &a->context, &err);
    if (ok) {
        print_head(&shipment.request);
        ok = write_body(path, shipment.request.body) || fail("the body cannot be written");
    } else {
        fail(err.text);
    }
    shipment_release(&shipment);
    return ok;
}

int main(int argc, char **argv)
{
    const struct backend *row = argc < 5 ? NULL : backend_by_name(str_of(argv[1]));
    struct buf file;
    if (row == NULL || !read_file(argv[3], &file)) {
        fail("BACKEND FORMAT FILE BODY [KEY=VALUE...]");
        return 2;
    }
    struct asked *a = calloc(1, sizeof *a);
    a->row = *row;
    a->origin = (struct origin){.service = STR("shop"), .hostname = STR("web-1"),
                                .cloud_provider = STR("Unknown"), .private_ip = STR("10.1.2.3"),
                                .mac_address = STR("0A:58:0A:01:02:03"), .processors = 4, .pid = 42,
                                .memory_bytes = UINT64_C(8) << 30, .hardware_type = STR("x86_64")};
    a->context = (struct backend_context){.origin = &a->origin, .token = STR("SECRET-1")};
    a->delivery = (struct delivery){.format = str_of(argv[2]), .profile = buf_slice(&file),
                                    .is_raw = true, .frequency_hz = 99, .cpu_percent = -1, .memory_percent = -1};
    bool ok = true;
    for (int i = 5; i < argc && ok; i++) {
        struct str value = str_of(argv[i]), key = str_cut(&value, '=');
        ok = take(a, key, value) || fail(argv[i]);
    }
    ok = ok && make(a, argv[4]);
    buf_release(&file);
    free(a);
    return ok ? 0 : 1;
}
