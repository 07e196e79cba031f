/* The functions and places that a stack's frames point to (walk.h), for some frames at once: of a CV its fingerprint,
 * because the memory of one that was freed may be another's by the time that frames are named; of a cop its line, and
 * where its file's name stands. What costs is the kernel's look-up of each part that is read, a third of a microsecond:
 * frames of one place are read once, and the rest by address, since what lies near is one part (os/remote.h). */
#include "runtime/perl/walk.h"

enum {
    KINDS = WALK_SUB | WALK_EVAL | WALK_FILE | WALK_TEXT,
    LINES_MAX = 1 << 24,
    UNKNOWN_FILE = 1, /* an address where nothing is */
};

struct place {
    uint32_t same;                               /* the frame that is read for this one, itself mostly */
    uint32_t cop_piece, first_piece, body_piece; /* of the batch in hand */
    uint64_t body;                               /* of a CV, as the plan has it */
    unsigned char cop[COP_BYTES], first[COP_BYTES], bytes[CV_BYTES];
};

/* What is to be read; `piece` becomes its number. */
struct request {
    uint64_t address;
    void *out;
    uint32_t *piece;
    uint32_t len;
};

/* Lies where the second copy of the contexts was. */
struct requests {
    uint32_t count;
    struct request at[3 * WALK_GROUP];
};
_Static_assert(sizeof(struct requests) <= WALK_CONTEXTS * PERL_CONTEXT_BYTES, "no room for them");
_Static_assert(sizeof(struct place) * WALK_GROUP <= WALK_CONTEXTS * PERL_CONTEXT_BYTES, "no room for them");
_Static_assert((int)PERL_FILE_BYTES <= (int)CV_BYTES, "no room for it");
_Static_assert(3 * WALK_GROUP <= WALK_PIECES, "no room for them");

uint64_t perl_cv_check(uint64_t cv, uint64_t body, const unsigned char *bytes)
{
    bool cloned = (load_u32(bytes + (CV_FLAGS - CV_AT)) & CV_CLONED) != 0;
    uint64_t hash = cloned ? 1 : mix_u64(mix_u64(load_u64(bytes + (CV_FILE - CV_AT)), cv), body);
    hash = mix_u64(hash, load_u64(bytes + (CV_START - CV_AT)));
    hash = mix_u64(hash, load_u64(bytes + (CV_ROOT - CV_AT)));
    hash = mix_u64(hash, load_u64(bytes + (CV_GV - CV_AT)));
    uint64_t low = hash >> 32 != 0 ? hash >> 32 : 1;
    return perl_check(PERL_SUB, low) | (cloned ? PERL_CLONED : 0);
}

uint32_t perl_file_check(const unsigned char *bytes, uint32_t len, bool is_text)
{
    uint64_t hash = 1;
    len = is_text ? len : (uint32_t)least(len, SV_FLAGS - 4); /* before its count of references */
    for (uint32_t i = 0; i < len && (!is_text || bytes[i] != 0); i++) {
        hash = mix_u64(hash, bytes[i]);
    }
    uint32_t low = (uint32_t)(hash >> 32) & PERL_FILE_MASK;
    return low != 0 ? low : 1;
}

uint64_t *calls_body(struct walk *w, uint64_t cv)
{
    uint32_t at = (uint32_t)(mix_u64(0, cv >> 3) % WALK_FUNCTIONS);
    if (w->plan->function[at].cv != cv) {
        w->plan->function[at].cv = cv;
        w->plan->function[at].body = 0;
    }
    return &w->plan->function[at].body;
}

static struct requests *begin_requests(struct walk *w)
{
    struct requests *requests = (struct requests *)(void *)w->pool[1];
    w->pieces = 0;
    requests->count = 0;
    return requests;
}

static void request(struct requests *requests, uint64_t address, void *out, uint32_t len, uint32_t *piece)
{
    requests->at[requests->count++] = (struct request){address, out, piece, len};
}

/* Shell's sort: in a catcher, of a hundred at the most. */
static void sort(struct requests *requests)
{
    static const uint32_t gaps[] = {23, 10, 4, 1};
    for (uint32_t g = 0; g < sizeof gaps / sizeof gaps[0]; g++) {
        for (uint32_t i = gaps[g]; i < requests->count; i++) {
            struct request moved = requests->at[i];
            uint32_t to = i;
            for (; to >= gaps[g] && requests->at[to - gaps[g]].address > moved.address; to -= gaps[g]) {
                requests->at[to] = requests->at[to - gaps[g]];
            }
            requests->at[to] = moved;
        }
    }
}

/* False: nothing can be read any more. */
static bool read_all(struct walk *w, struct requests *requests)
{
    sort(requests);
    for (uint32_t i = 0; i < requests->count; i++) {
        const struct request *asked = &requests->at[i];
        *asked->piece = calls_ask(w, asked->address, asked->out, asked->len);
    }
    return w->pieces == 0 || calls_read(w);
}

static void ask(struct walk *w, struct requests *requests, const struct runtime_frame *frame, struct place *place)
{
    if ((frame->flags & KINDS) == 0) {
        return;
    }
    request(requests, frame->check + COP_AT, place->cop, COP_BYTES, &place->cop_piece);
    if ((frame->flags & WALK_EVAL) != 0) {
        request(requests, frame->code + COP_AT, place->first, COP_BYTES, &place->first_piece);
    } else if ((frame->flags & WALK_SUB) != 0) {
        place->body = *calls_body(w, frame->code);
        request(requests, frame->code, place->first, SV_BYTES, &place->first_piece);
        request(requests, place->body + CV_AT, place->bytes, CV_BYTES, &place->body_piece);
    }
}

/* The first of these frames that stands at the same place of the same function, as most of a recursion's do. */
static uint32_t first_like(const struct runtime_frame *frames, uint32_t frame)
{
    for (uint32_t i = 0; i < frame; i++) {
        if (frames[i].code == frames[frame].code && frames[i].check == frames[frame].check &&
            ((frames[i].flags ^ frames[frame].flags) & KINDS) == 0) {
            return i;
        }
    }
    return frame;
}

/* The line that these bytes tell, and where its file's name stands. */
static uint32_t read_cop(const struct walk *w, uint32_t piece, const unsigned char *bytes, uint64_t *file)
{
    uint32_t line = load_u32(bytes + (COP_LINE - COP_AT));
    bool good = calls_got(w, piece) && line < LINES_MAX;
    uint64_t name = good ? load_u64(bytes + (COP_FILE - COP_AT)) : 0;
    *file = plausible(name) ? name : UNKNOWN_FILE;
    return good ? line : 0;
}

/* A closure may be freed once it has run: one that was not met yet should be named at once. */
static void take_body(struct walk *w, struct runtime_frame *frame, const struct place *place)
{
    uint64_t *known = calls_body(w, frame->code);
    w->short_lived = w->short_lived || (*known != place->body &&
                                        (load_u32(place->bytes + (CV_FLAGS - CV_AT)) & CV_CLONED) != 0);
    *known = place->body;
    frame->check = perl_cv_check(frame->code, place->body, place->bytes);
    frame->flags &= ~(uint32_t)KINDS;
}

/* A sub's frame is done with if the plan knew its body. False: it is no sub. */
static bool take_sub(struct walk *w, struct runtime_frame *frame, struct place *place)
{
    uint32_t flags = load_u32(place->first + SV_FLAGS);
    uint64_t body = load_u64(place->first + SV_BODY);
    if (!calls_got(w, place->first_piece) || (!perl_is(flags, PERL_CV) && !perl_is(flags, PERL_FORMAT))) {
        return false;
    }
    if (body == place->body && calls_got(w, place->body_piece)) {
        take_body(w, frame, place);
    }
    place->body = body;
    return true;
}

/* What the first batch tells. False: what should be a sub is none. */
static bool take(struct walk *w, struct runtime_frame *frame, struct place *place)
{
    uint64_t file, first_file;
    if ((frame->flags & KINDS) == 0) {
        return true;
    }
    frame->position = read_cop(w, place->cop_piece, place->cop, &file);
    if ((frame->flags & WALK_SUB) != 0) {
        return take_sub(w, frame, place);
    }
    if ((frame->flags & WALK_EVAL) != 0) {
        uint32_t first = read_cop(w, place->first_piece, place->first, &first_file);
        frame->position = (frame->flags & WALK_TEXT) != 0 ? first : frame->position;
        frame->check = perl_check(PERL_EVAL, first);
        frame->code = first_file;
    } else {
        frame->check = perl_check((enum perl_kind)frame->code, 0);
        frame->code = file;
    }
    bool lasts = frame->check >> PERL_KIND_SHIFT == PERL_MAIN || frame->code == UNKNOWN_FILE;
    frame->flags = (frame->flags & ~(uint32_t)KINDS) | (lasts ? 0U : (uint32_t)WALK_NAMED);
    return true;
}

static void ask_more(struct requests *requests, const struct runtime_frame *frame, struct place *place)
{
    if ((frame->flags & WALK_SUB) != 0) {
        request(requests, place->body + CV_AT, place->bytes, CV_BYTES, &place->body_piece);
    } else if ((frame->flags & WALK_NAMED) != 0) {
        request(requests, frame->code, place->bytes, PERL_FILE_BYTES, &place->body_piece);
    }
}

/* False: a sub's body could not be had. */
static bool take_more(struct walk *w, struct runtime_frame *frame, const struct place *place)
{
    if ((frame->flags & WALK_SUB) != 0) {
        bool got = calls_got(w, place->body_piece);
        if (got) {
            take_body(w, frame, place);
        }
        return got;
    }
    if ((frame->flags & WALK_NAMED) != 0) {
        uint32_t got = place->body_piece != 0 ? w->piece[place->body_piece - 1].got : 0;
        frame->check |= (uint64_t)perl_file_check(place->bytes, got, w->perl->threaded) << PERL_FILE_SHIFT;
        frame->flags &= ~(uint32_t)WALK_NAMED;
    }
    return true;
}

/* Bodies that the plan did not know, or had elsewhere, and names of files. False: they cannot be had. */
static bool read_more(struct walk *w, struct runtime_frame *frames, struct place *places, uint32_t count)
{
    struct requests *requests = begin_requests(w);
    for (uint32_t i = 0; i < count; i++) {
        if (places[i].same == i) {
            ask_more(requests, &frames[i], &places[i]);
        }
    }
    bool good = read_all(w, requests);
    for (uint32_t i = 0; good && i < count; i++) {
        good = places[i].same != i || take_more(w, &frames[i], &places[i]);
    }
    return good;
}

static void copy_same(struct runtime_frame *frames, const struct place *places, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct runtime_frame *read = &frames[places[i].same];
        frames[i].code = read->code;
        frames[i].check = read->check;
        frames[i].position = read->position;
        frames[i].flags &= ~(uint32_t)KINDS;
    }
}

static bool read_group(struct walk *w, struct runtime_frame *frames, uint32_t count)
{
    struct place *places = (struct place *)(void *)w->pool[0]; /* the contexts are done with */
    struct requests *requests = begin_requests(w);
    for (uint32_t i = 0; i < count; i++) {
        places[i] = (struct place){.same = first_like(frames, i)};
        if (places[i].same == i) {
            ask(w, requests, &frames[i], &places[i]);
        }
    }
    bool good = read_all(w, requests);
    for (uint32_t i = 0; good && i < count; i++) {
        good = places[i].same != i || take(w, &frames[i], &places[i]);
    }
    good = good && read_more(w, frames, places, count);
    copy_same(frames, places, good ? count : 0);
    return good;
}

enum runtime_end calls_places(struct walk *w)
{
    for (uint32_t at = 0; at < w->out->count; at += WALK_GROUP) {
        if (!read_group(w, &w->out->frame[at], (uint32_t)least(WALK_GROUP, w->out->count - at))) {
            return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
        }
    }
    return RUNTIME_COMPLETE;
}
