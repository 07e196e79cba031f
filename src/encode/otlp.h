/*
 * otlp: a profile as OpenTelemetry's ExportProfilesServiceRequest, protocol release 1.10.
 *
 * Where the profile comes from is added to each resource that does not say the same itself (rules->attributes).
 * Nothing here reads it back. Releases before 1.10 have other numbers for the same fields: docs/backends.md.
 *
 * What is where:
 *   resources    one per process: process.pid, process.executable.name, container.id or .name, and
 *                pillion.appid (what it runs). Processes without a pid (of collapsed stacks) are one per container
 *   profiles     one per resource and sample type, CPU time first; off_cpu and wall where waiting
 *                threads are looked at, then one for each other event
 *   samples      one value, no timestamps; thread.name and thread.id as attributes
 *   locations    as in pprof (encode/pprof.h), and profile.frame.type; frames of scripts lie in no
 *                mapping
 *   mappings     the modules, with process.executable.build_id.gnu
 *
 * CPU time. Receivers know a CPU profile by samples/count with the period cpu/nanoseconds, and take
 * value x period for CPU time. A stack's time here is no multiple of 1e9/Hz: samples are weighted
 * by the kernel's accounting, and some of it has no sample. Counts of whole samples would be wrong
 * by half a period per stack. So the period is 1 ns and a value is in nanoseconds: the sum is
 * exact, wherever it is multiplied out.
 *   cpu/nanoseconds as sample type would be as exact, but Pyroscope names a profile by its period
 *   then, "cpu", and not "process_cpu", where everybody looks for CPU time.
 * off_cpu has no period, by which Pyroscope knows it. All others are their own period, of 1.
 * Names of sample types have "_" for "-", which Pyroscope refuses.
 *
 * The bytes are the same for the same profile; so is profile_id, by which a receiver may know what
 * it has been sent twice. Lengths stand before what they are of, so everything is gone through
 * twice; only the tables are held: their bytes, 4 bytes per frame, 8 per node, 32 per sample.
 *
 * Format: https://github.com/open-telemetry/opentelemetry-proto, profiles/v1development
 */
#ifndef ENCODE_OTLP_H
#define ENCODE_OTLP_H

#include "base/encode_rules.h"
#include "base/iface.h"
#include "profile/profile.h"

#define OTLP_SCHEMA_URL "https://opentelemetry.io/schemas/1.37.0"

/* Rules may be null: none. Applied here is `attributes` alone; others are by fit.h. */
bool otlp_write(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err);

#endif
