/*
 * trust_files: where the certificate authorities are found.
 *
 * The first place that holds one that can be used: --ca-file (which then is the only one);
 * SSL_CERT_FILE; SSL_CERT_DIR; CURL_CA_BUNDLE, AWS_CA_BUNDLE, REQUESTS_CA_BUNDLE; the bundles of
 * the distributions; their directories; the set that is built in. What a variable names and is not
 * there is passed over: the variable is for the programs around us.
 *
 * Parsing a bundle takes some 45 ms of CPU time: it is done for the first connection that needs it.
 */
#ifndef CAPTURE_TRUST_FILES_H
#define CAPTURE_TRUST_FILES_H

#include "deliver/trust.h"

/* `get` gives a variable's text, empty when it is not set. `ca_file` may be null. `trust` is all
 * zero. */
bool trust_files_load(struct trust *trust, const char *ca_file,
                      struct str (*get)(void *context, const char *name), void *context,
                      struct err *err);

#endif
