/*
 * certificates: made once by openssl for the tests of src/deliver; none was ever used. P-256 and SHA-256 unless said
 * otherwise. All are valid from 2026-11-22T09:16:37Z or :38Z, for a year but where said.
 */
#ifndef CERTIFICATES_H
#define CERTIFICATES_H

/* O=Test, CN=Test Root; an authority, until 2036-11-19; signed named, client and constrained */
#define ROOT_PEM \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIBrDCCAVGgAwIBAgIUYkMzN/NQJy4pKhgRx9MPs5bZYp8wCgYIKoZIzj0EAwIw\n" \
    "IzENMAsGA1UECgwEVGVzdDESMBAGA1UEAwwJVGVzdCBSb290MB4XDTI2MTEyMjA5\n" \
    "MTYzN1oXDTM2MTExOTA5MTYzN1owIzENMAsGA1UECgwEVGVzdDESMBAGA1UEAwwJ\n" \
    "VGVzdCBSb290MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEF1LedjGvVwvPUz2/\n" \
    "8sO1tYiQiuMZi+yO7pkQ5OFexSegCoYeWN75zI3UIpiuiPx95NR/m9krMgRmE9Rb\n" \
    "Ab7G1aNjMGEwHQYDVR0OBBYEFB2d5r4ALHvC3jrC0pzsD+O9l2EwMB8GA1UdIwQY\n" \
    "MBaAFB2d5r4ALHvC3jrC0pzsD+O9l2EwMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0P\n" \
    "AQH/BAQDAgIEMAoGCCqGSM49BAMCA0kAMEYCIQCgswxqZlv2B0RoF+KZph4CFLtu\n" \
    "uxldm4KH3XRs7eW1gAIhAIAH6g1vVAdjNAOerGvU622Eko4f8nnoEjP0LlVB/zJF\n" \
    "-----END CERTIFICATE-----\n"

/* CN=cn.example.com; a.example.com, *.wild.example.com, 10.1.2.3, 2001:db8::1; serverAuth, clientAuth */
#define NAMED_PEM \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIB8zCCAZmgAwIBAgIDAmRjMAoGCCqGSM49BAMCMCMxDTALBgNVBAoMBFRlc3Qx\n" \
    "EjAQBgNVBAMMCVRlc3QgUm9vdDAeFw0yNjExMjIwOTE2MzdaFw0yNzExMjIwOTE2\n" \
    "MzdaMBkxFzAVBgNVBAMMDmNuLmV4YW1wbGUuY29tMFkwEwYHKoZIzj0CAQYIKoZI\n" \
    "zj0DAQcDQgAEoRPQs/OHqfI+rW2q2Bb3lJhfQzuI12xA4KTiTr1lJjWlmlv92bl/\n" \
    "Yj+5FqmWkf7Zisz4DBPo3yFVLpI+sXcV/qOBxTCBwjBRBgNVHREESjBIgg1hLmV4\n" \
    "YW1wbGUuY29tghIqLndpbGQuZXhhbXBsZS5jb22HBAoBAgOHECABDbgAAAAAAAAA\n" \
    "AAAAAAGBC3hAeS5leGFtcGxlMB0GA1UdJQQWMBQGCCsGAQUFBwMBBggrBgEFBQcD\n" \
    "AjAOBgNVHQ8BAf8EBAMCB4AwHQYDVR0OBBYEFC7QnuhHBO9Rt7Tj+ZcMRFbiWdvM\n" \
    "MB8GA1UdIwQYMBaAFB2d5r4ALHvC3jrC0pzsD+O9l2EwMAoGCCqGSM49BAMCA0gA\n" \
    "MEUCIEIHBCJtnBQb4l0LtpDlfNbPqBkewLBMWUks+MJOzP/WAiEA45NZOoF1X1rA\n" \
    "tfLbgRGb6zarhSZ58nezcSvLMFiWVhw=\n" \
    "-----END CERTIFICATE-----\n"

/* its key: PKCS#8 */
#define NAMED_KEY \
    "-----BEGIN PRIVATE KEY-----\n" \
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg9ViBUhDMaCPws8TM\n" \
    "DHfTKlBMQUuAxEwQD8foDrvJG56hRANCAAShE9Cz84ep8j6tbarYFveUmF9DO4jX\n" \
    "bEDgpOJOvWUmNaWaW/3ZuX9iP7kWqZaR/tmKzPgME+jfIVUukj6xdxX+\n" \
    "-----END PRIVATE KEY-----\n"

/* the same: SEC1 */
#define NAMED_SEC1 \
    "-----BEGIN EC PRIVATE KEY-----\n" \
    "MHcCAQEEIPVYgVIQzGgj8LPEzAx30ypQTEFLgMRMEA/H6A67yRueoAoGCCqGSM49\n" \
    "AwEHoUQDQgAEoRPQs/OHqfI+rW2q2Bb3lJhfQzuI12xA4KTiTr1lJjWlmlv92bl/\n" \
    "Yj+5FqmWkf7Zisz4DBPo3yFVLpI+sXcV/g==\n" \
    "-----END EC PRIVATE KEY-----\n"

/* the same, under a pass phrase: the old form */
#define NAMED_LOCKED \
    "-----BEGIN EC PRIVATE KEY-----\n" \
    "Proc-Type: 4,ENCRYPTED\n" \
    "DEK-Info: AES-128-CBC,7654AC9F60E26C5E364562C86D782A5A\n" \
    "\n" \
    "yy8LPZIeE04usg+iMxJXEPMiuR52xiY0Ko1bEo/DzW2trk+3lQuLInSS3aYNFPN2\n" \
    "4PV37xmf70c7/slUtEzhiqjiNQHW4kwCUIzQKStuCU9KTpCzmnrZbFkb0ldlfC46\n" \
    "6A0H4ED8B8766HQGdf5CiY2MhXym+YnLlaJazUK/uQk=\n" \
    "-----END EC PRIVATE KEY-----\n"

/* and PKCS#8 */
#define NAMED_LOCKED8 \
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\n" \
    "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAju3yF9oAqSPwICCAAw\n" \
    "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEEF/3QsH0zIJppol4jKhhxrIEgZBX\n" \
    "DQlPvw/42cNWazK6q+Vquwvrd8RwDVfuv8DKFl4tuhED6Kzfmo0E6xapcF6DUjtV\n" \
    "9z+9tD1GzC+Loz3Amb51wd1eV9tmlHfWVFqSI1ebz/DFTgjNFbKTD0hkKGJLjMoG\n" \
    "xLwF/mtcF/oUlLZsOFoNqAem1xqCUK8XeiHpuxqZyjrub5cRu7mYG9rTSPj39/A=\n" \
    "-----END ENCRYPTED PRIVATE KEY-----\n"

/* SHA-256 of its SubjectPublicKeyInfo, by openssl pkey | openssl dgst */
#define NAMED_PIN "sha256//JX9dAf4hLd+lEMObNGyMu0OMpymBpQkh0W4c17Qz92o="

/* CN=client.example.com, the same as SAN; P-384; clientAuth alone */
#define CLIENT_PEM \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIBwzCCAWqgAwIBAgIDAJgBMAoGCCqGSM49BAMCMCMxDTALBgNVBAoMBFRlc3Qx\n" \
    "EjAQBgNVBAMMCVRlc3QgUm9vdDAeFw0yNjExMjIwOTE2MzhaFw0yNzExMjIwOTE2\n" \
    "MzhaMB0xGzAZBgNVBAMMEmNsaWVudC5leGFtcGxlLmNvbTB2MBAGByqGSM49AgEG\n" \
    "BSuBBAAiA2IABKhC1HuPVlIJZ5LN0VhO//XR+igKXJNgU464y1BXa7qJHCC08RfF\n" \
    "ujLIHd1k4MVNm1uJ0ZkRlXzRz/aB1Qzw0ic/Q9ioU2OLkCmKP43Ub/fmE6Qgn9iV\n" \
    "juckqRoN36De76N2MHQwHQYDVR0RBBYwFIISY2xpZW50LmV4YW1wbGUuY29tMBMG\n" \
    "A1UdJQQMMAoGCCsGAQUFBwMCMB0GA1UdDgQWBBT8IgqYagSfik0CqBaJT2hBWyIu\n" \
    "qTAfBgNVHSMEGDAWgBQdnea+ACx7wt46wtKc7A/jvZdhMDAKBggqhkjOPQQDAgNH\n" \
    "ADBEAiB1VlBX4M2zSjXtEsgvIl+Si6AYtvkySt02EHPUVp2MwAIgIMXRoUvr4y6q\n" \
    "HUSV4DeFlbVM4VqrjPEuU6fzcFn3hew=\n" \
    "-----END CERTIFICATE-----\n"

/* its key */
#define CLIENT_KEY \
    "-----BEGIN PRIVATE KEY-----\n" \
    "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDApJXwN8/smNXhB8PPo\n" \
    "HvBvEOK9IQBj/X1jCWrPOntAmfpV/YByiRTgxZb977oB9r6hZANiAASoQtR7j1ZS\n" \
    "CWeSzdFYTv/10fooClyTYFOOuMtQV2u6iRwgtPEXxboyyB3dZODFTZtbidGZEZV8\n" \
    "0c/2gdUM8NInP0PYqFNji5Apij+N1G/35hOkIJ/YlY7nJKkaDd+g3u8=\n" \
    "-----END PRIVATE KEY-----\n"

/* CN=Constrained CA; an authority with critical nameConstraints */
#define CONSTRAINED_PEM \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIBnzCCAUWgAwIBAgIDAxBZMAoGCCqGSM49BAMCMCMxDTALBgNVBAoMBFRlc3Qx\n" \
    "EjAQBgNVBAMMCVRlc3QgUm9vdDAeFw0yNjExMjIwOTE2MzhaFw0yNzExMjIwOTE2\n" \
    "MzhaMBkxFzAVBgNVBAMMDkNvbnN0cmFpbmVkIENBMFkwEwYHKoZIzj0CAQYIKoZI\n" \
    "zj0DAQcDQgAEEfFtrLnzedgF6pjBbXw7kepk3AOPooLU9VcIHQVy1kWKuBf3dddY\n" \
    "wYf/nCUp0eTx0z+ZRLO0McCQKY+oeae8eKNyMHAwDwYDVR0TAQH/BAUwAwEB/zAd\n" \
    "BgNVHR4BAf8EEzARoA8wDYILZXhhbXBsZS5jb20wHQYDVR0OBBYEFOzCECwmnmvJ\n" \
    "R9GEzR160uP12n8OMB8GA1UdIwQYMBaAFB2d5r4ALHvC3jrC0pzsD+O9l2EwMAoG\n" \
    "CCqGSM49BAMCA0gAMEUCIGzUAi0nYBQSusR5Xqzd30BPLIhiq9ZNEvhBD43BiOAk\n" \
    "AiEA5lidncu/cKGRYTfpaW2QEBrzfxDyX92Mc0poj4csQ8o=\n" \
    "-----END CERTIFICATE-----\n"

/* C=XX, CN=old.example.com; signed by itself; no extension at all, version 1 */
#define OLD_PEM \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIBSDCB7wIUK+xdm2mSNyNYEJ/wea/mpSCs/OEwCgYIKoZIzj0EAwIwJzELMAkG\n" \
    "A1UEBhMCWFgxGDAWBgNVBAMMD29sZC5leGFtcGxlLmNvbTAeFw0yNjExMjIwOTE2\n" \
    "MzhaFw0yNzExMjIwOTE2MzhaMCcxCzAJBgNVBAYTAlhYMRgwFgYDVQQDDA9vbGQu\n" \
    "ZXhhbXBsZS5jb20wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASlZ/UfXYnnW68P\n" \
    "i2ow0qCde929/i/bjxQHiTNGAMO/IU5oNZbZ+QO7vHmBcTh27u1WUlZ9GOEWlf1n\n" \
    "Q1PB531vMAoGCCqGSM49BAMCA0gAMEUCIQCJKNgCyRPFZeITKbUZ5RvfyzP/Ckwi\n" \
    "ySswf9kkpPqtGAIgSWJXJZkKUO7zlgXfUfJYfQ/WF9Hq+nHm/2reqffI3YI=\n" \
    "-----END CERTIFICATE-----\n"

/* CN=rsa.example.com; RSA 2048; signed by itself; an authority, until 2036-11-19 */
#define RSA_PEM \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIDFTCCAf2gAwIBAgIUEGXMET3ZMB7xFpEu0GuRjrQIAE0wDQYJKoZIhvcNAQEL\n" \
    "BQAwGjEYMBYGA1UEAwwPcnNhLmV4YW1wbGUuY29tMB4XDTI2MTEyMjA5MTYzOFoX\n" \
    "DTM2MTExOTA5MTYzOFowGjEYMBYGA1UEAwwPcnNhLmV4YW1wbGUuY29tMIIBIjAN\n" \
    "BgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA0UM/FUdr5IeKYOLVga+DdAu92Kb5\n" \
    "pMdQqI0KhfsEhzLgHnrzedUcRPy4KfXuDCSp4zvpz/FKkDva4C9EnvFyzkoVhnlC\n" \
    "z0iwLU/xgrU00gWFo+8LHb+XqVC38mcaBlAccKhJbLEdhyrChW8kWK9U0MUnV8ke\n" \
    "dn87aIZUJ59R3u826x6D+2TYXoFXCXfWPVc8QPP/Xg1q4S8WxuURNIGCLNg1lLAm\n" \
    "/POIwNLJIZhsocO3VJRAyoWBDB8OzlAzJ8ir4bPBOEey1BSSaf/tG2XOJ/izDV0v\n" \
    "9fznmump3PzvguUzDvt7/Ti8mu2q5TB3wQCNp0VTwB4OwcMzP4xxsaRy7wIDAQAB\n" \
    "o1MwUTAdBgNVHQ4EFgQU9ujGrSFSCvU6fXCN52ec6rfKgA8wHwYDVR0jBBgwFoAU\n" \
    "9ujGrSFSCvU6fXCN52ec6rfKgA8wDwYDVR0TAQH/BAUwAwEB/zANBgkqhkiG9w0B\n" \
    "AQsFAAOCAQEArn4UCwp1Trv6LWPebYx1EhbL+t54UWFRn6+959xZ71P31HwR7w6X\n" \
    "RWGIShcN2Z8z3u9ifS8S7gVQYHk3nIKC6sOMDkxz0D/SvEL/ulbwPdbWiUUK6Fw3\n" \
    "/dwjatIg21aOODkkGDscgiEHkucUDM+8tDeENF7lPqFgpjE6YlCfds09kv9Q+zmd\n" \
    "20yCvK7+H2MV7ylwdX1AxSftQru88nxRr642T7dTcxx2UK3dC8R/IZ8UfKBWH5me\n" \
    "U6P0uGdpHsRyvzEyX9QdQpWeAf24wy8D+ZyFXnVfadHOvvx66JJnYJtSeVYGH5A9\n" \
    "y5soj1Pb1Gpyw72XK9aEfZFwsJqPX0anvw==\n" \
    "-----END CERTIFICATE-----\n"

/* its key: PKCS#8 */
#define RSA_KEY \
    "-----BEGIN PRIVATE KEY-----\n" \
    "MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDRQz8VR2vkh4pg\n" \
    "4tWBr4N0C73Ypvmkx1CojQqF+wSHMuAeevN51RxE/Lgp9e4MJKnjO+nP8UqQO9rg\n" \
    "L0Se8XLOShWGeULPSLAtT/GCtTTSBYWj7wsdv5epULfyZxoGUBxwqElssR2HKsKF\n" \
    "byRYr1TQxSdXyR52fztohlQnn1He7zbrHoP7ZNhegVcJd9Y9VzxA8/9eDWrhLxbG\n" \
    "5RE0gYIs2DWUsCb884jA0skhmGyhw7dUlEDKhYEMHw7OUDMnyKvhs8E4R7LUFJJp\n" \
    "/+0bZc4n+LMNXS/1/Oea6anc/O+C5TMO+3v9OLya7arlMHfBAI2nRVPAHg7BwzM/\n" \
    "jHGxpHLvAgMBAAECggEART755Ho2VzCM12OoYBoqpx9tioAyctbrt2K4nT5DsNNi\n" \
    "e2OXJvUgvilcbbIuPAFz4DhGtiMz18eetXmevPPL2DyGo/GDbKEyf0QJeIWq/WaL\n" \
    "YwRqisUIFCScQg/g+j7PMm5Voax4R26cYNg20Evwhob+7lskg/S1PXDZ7ySWzGyF\n" \
    "20mjf8am8Lq9wwSUSBizLE7aFnFW8B5C8X36O9zOZy3V4rdegPmQFtFwyuZBJXGs\n" \
    "jLFXODa67fuIerueSW8AGqmhfGyUrm3ExvIbd1BTV1nD8+JyyPE8hqVS2qyjUtgI\n" \
    "qzX2j9IfB5hbg1Q/Td60jHF68f2foLLJzRTUDd4+1QKBgQDvoFhZRVWbu7XLH76a\n" \
    "zX9N1PexPG/M6IPr3vnpTYuwqPRR1BSiPa1e6pKagw6LStjYeazFJgQetKp+XXz+\n" \
    "eAh+LQzfLXdixbbqpNKpOTLvOrDTmaNiKwbh3+Cx2bXwW37tgN6JelXyTvD71zEN\n" \
    "/iqer7beqwFQBKTNevINwWP1pQKBgQDfj8QY/9kgxcmiYUO2zG7Tek9kmQyj+vrf\n" \
    "E4OJ28TeGt4xdJU/ajEY7yVufunf4RqewHykCYeS7sLOL/UsWhTbtYpU9Ak3J3yQ\n" \
    "LqDkXiY1ZLHSPzJTneELyCbVmjwAMWNKeAZwTCnik4ev9iAy4tf7hnxo0uHDGMO7\n" \
    "gxeQhaWqAwKBgQCfoQd54LBY4EEIoYsOANtPdBHVJdesfzByjsWY36mw87xeTpO4\n" \
    "SLIXytgCyk+EB0ZRXyzy4JJaCiyRpaHAuyGdPFGY0ub3C5MA2O/k/0+pAkYNkAnB\n" \
    "ObyJ9+PtVoTXK3xwpyqYFsDufBwZCI+LLMgjkhaWWwCy14UZxU8+TphSaQKBgQCA\n" \
    "iBh3QwljpTNzDzauL0T8gxKIRNIWqSJ5BLAYn2jFRW8/wcZZCkWmD0BXEdKGq9Xx\n" \
    "NbuzV+NBX9JSVxI/aJ8bXnlktFVkB2i/QH+yLEsNYZI2zayylE+hxXZGUoFynvJ2\n" \
    "CyGwiKmAIc/eI8SJXRBOBRkb7zprP56w/QKcTapcXwKBgH8K10f2nLQpASGt3JCw\n" \
    "wAhYFI3rbeEiK0MqtiD8bG946o3mmXBnvavwUY0zBalBSGv/oTxVKj0wVbmrZ9KO\n" \
    "4xDs3fKWVN4gUwujONhBAdvtjrO8S3zaayJ8FejEf4eZY4XWAlC03/3nd2TbJsXV\n" \
    "5/dt7wDJBpzzCVE90a4ip7pW\n" \
    "-----END PRIVATE KEY-----\n"

/* CN=Top; an authority. This and the next five are valid from 2026-11-25T18:32:10Z until 2036-11-22 */
#define TOP_PEM \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIBcDCCARegAwIBAgIUVlvXl2urdCNLyrXJK9flRtfyVtwwCgYIKoZIzj0EAwIw\n" \
    "DjEMMAoGA1UEAwwDVG9wMB4XDTI2MTEyNTE4MzIxMFoXDTM2MTEyMjE4MzIxMFow\n" \
    "DjEMMAoGA1UEAwwDVG9wMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE0UZwfA0J\n" \
    "azNJHVsdPct9i7/JtCnySzgM2Y1kQYQb9wJQGoPVq+OL8i09+8yZDMgFHNltb4QK\n" \
    "KScEi562B8q9NaNTMFEwHQYDVR0OBBYEFMEsMkE6B6/f2mIcAlKXNkLJtViQMB8G\n" \
    "A1UdIwQYMBaAFMEsMkE6B6/f2mIcAlKXNkLJtViQMA8GA1UdEwEB/wQFMAMBAf8w\n" \
    "CgYIKoZIzj0EAwIDRwAwRAIgByTpygP3jy1kVkS7BIab71kIMB1XplZ5gP39FAFm\n" \
    "O2sCIBCQcbzI2HGxIOxb9uBh/2Nb5Ub+yfdEtcUksFK6ZvXe\n" \
    "-----END CERTIFICATE-----\n"

/* CN=Upper; an authority, signed by Top */
#define UPPER_PEM \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIBdDCCARmgAwIBAgIUHq28qABuuR0MhFVtTKCOhCtqV14wCgYIKoZIzj0EAwIw\n" \
    "DjEMMAoGA1UEAwwDVG9wMB4XDTI2MTEyNTE4MzIxMFoXDTM2MTEyMjE4MzIxMFow\n" \
    "EDEOMAwGA1UEAwwFVXBwZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAT4CosL\n" \
    "3N1RUSXFiHNY8RCKOw4LbJ2BhhlflaBGYdSqNWXbofXFFnsDDlPXiiSCTWrYswGq\n" \
    "MWR3nI/tcpQQSGAqo1MwUTAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBT37VB0\n" \
    "tn3ESexRvh3aQ865wuP0hjAfBgNVHSMEGDAWgBTBLDJBOgev39piHAJSlzZCybVY\n" \
    "kDAKBggqhkjOPQQDAgNJADBGAiEA6Fvl2XcOkECwODlsW7RT3phiwyF7cWPSfDE4\n" \
    "BIF39XwCIQCOTrwebyRRxpa23fbUH5RK8bXFz/XNDFji7CfT5xvYyQ==\n" \
    "-----END CERTIFICATE-----\n"

/* CN=Upper, too; signed by itself, and signed none of these */
#define DECOY_PEM \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIBdTCCARugAwIBAgIUF+6UEV0noP9x1HPOqqnehwxLm/EwCgYIKoZIzj0EAwIw\n" \
    "EDEOMAwGA1UEAwwFVXBwZXIwHhcNMjYxMTI1MTgzMjEwWhcNMzYxMTIyMTgzMjEw\n" \
    "WjAQMQ4wDAYDVQQDDAVVcHBlcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMCI\n" \
    "X/mdBFdSfhoKKYYdW3s9OZ5C7fb15wdAj1be82/2L329043e3ylt9Z3fhHQb2wi5\n" \
    "F86E4KNSytv/fBXGSrCjUzBRMB0GA1UdDgQWBBTo+wH/boegsZI/PN5tERRT8iNI\n" \
    "5jAfBgNVHSMEGDAWgBTo+wH/boegsZI/PN5tERRT8iNI5jAPBgNVHRMBAf8EBTAD\n" \
    "AQH/MAoGCCqGSM49BAMCA0gAMEUCIEm1jx8n4FJn/vxwo1xQcTNQA8bRIxmJiBs+\n" \
    "1V7ZXORhAiEAyo8WSSv30ezSe/TEX8T4wAkiL4TMXIGcuwjx6yUdITQ=\n" \
    "-----END CERTIFICATE-----\n"

/* CN=Lower; an authority, signed by Upper; nameConstraints, not critical: good.example.com and 10.0.0.0/8, but not
 * bad.good.example.com */
#define LOWER_PEM \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIBvjCCAWSgAwIBAgIUEqtqSuWkEAFV6Ee2kYjAgBmlCHAwCgYIKoZIzj0EAwIw\n" \
    "EDEOMAwGA1UEAwwFVXBwZXIwHhcNMjYxMTI1MTgzMjEwWhcNMzYxMTIyMTgzMjEw\n" \
    "WjAQMQ4wDAYDVQQDDAVMb3dlcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABK8i\n" \
    "/9NLjw0hp2U6qkyvgCdfBARlWfH183GecEdZuZRi8WQ4zJE1G4kxNE9K5vEcdXLF\n" \
    "1MbywMywYfIc46sk4tSjgZswgZgwDwYDVR0TAQH/BAUwAwEB/zBFBgNVHR4EPjA8\n" \
    "oCAwEoIQZ29vZC5leGFtcGxlLmNvbTAKhwgKAAAA/wAAAKEYMBaCFGJhZC5nb29k\n" \
    "LmV4YW1wbGUuY29tMB0GA1UdDgQWBBSUh6ErZXwdKrbZ4GZjrYl2GBGEADAfBgNV\n" \
    "HSMEGDAWgBT37VB0tn3ESexRvh3aQ865wuP0hjAKBggqhkjOPQQDAgNIADBFAiEA\n" \
    "gDDQY/DgCCIFqjBsNIWRJWgHLd4jYXcXg10JhnD4NgYCIAXLtuY/ceO/xp4JMMLV\n" \
    "t8IJ01+pzDxpn6hin4sOdNA1\n" \
    "-----END CERTIFICATE-----\n"

/* CN=leaf, signed by Lower; *.good.example.com, good.example.com, 10.9.9.9 */
#define LEAF_PEM \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIBmjCCAUCgAwIBAgIUOt8x1GXFJskakrtIHbf/9cOHFJAwCgYIKoZIzj0EAwIw\n" \
    "EDEOMAwGA1UEAwwFTG93ZXIwHhcNMjYxMTI1MTgzMjEwWhcNMzYxMTIyMTgzMjEw\n" \
    "WjAPMQ0wCwYDVQQDDARsZWFmMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEu95J\n" \
    "3vuf++TeD5wXZM4NxR5QNlopOLq2aJKs9H0EH4ZbERzs26UX1J2hX4K44IzRezhg\n" \
    "QnuAH9TNBZS9JJBE7qN5MHcwNQYDVR0RBC4wLIISKi5nb29kLmV4YW1wbGUuY29t\n" \
    "ghBnb29kLmV4YW1wbGUuY29thwQKCQkJMB0GA1UdDgQWBBTeNZtpPwde4wB5z0ed\n" \
    "JFsPz/K42jAfBgNVHSMEGDAWgBSUh6ErZXwdKrbZ4GZjrYl2GBGEADAKBggqhkjO\n" \
    "PQQDAgNIADBFAiAnl/SwTWdLaSkg1CYvACzQU6Qtub/BG6AMf+Iry1GccQIhALzv\n" \
    "+GChqtV2dRqI9f8iB9oGGvF2nx94UWPsPXq8CWnj\n" \
    "-----END CERTIFICATE-----\n"

/* CN=stray, signed by Lower; a.good.example.com, elsewhere.example.com, 192.0.2.1 */
#define STRAY_PEM \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIBoDCCAUagAwIBAgIUSLJsntHZ187C+Ihe8kzQEh2RkrYwCgYIKoZIzj0EAwIw\n" \
    "EDEOMAwGA1UEAwwFTG93ZXIwHhcNMjYxMTI1MTgzMjEwWhcNMzYxMTIyMTgzMjEw\n" \
    "WjAQMQ4wDAYDVQQDDAVzdHJheTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABGIw\n" \
    "0JuHaXtjoT7og4TFCki+uF9jlTppIn32lYS1yRrH8c5Nuc5/CGGOxYSbD+YZ+xvw\n" \
    "OvcCbkViQTmO84xj4SqjfjB8MDoGA1UdEQQzMDGCEmEuZ29vZC5leGFtcGxlLmNv\n" \
    "bYIVZWxzZXdoZXJlLmV4YW1wbGUuY29thwTAAAIBMB0GA1UdDgQWBBTjCXWIXrEm\n" \
    "bjT8W3q+scKdPi6mlzAfBgNVHSMEGDAWgBSUh6ErZXwdKrbZ4GZjrYl2GBGEADAK\n" \
    "BggqhkjOPQQDAgNIADBFAiEA27I/SS8X26bI5EaLNi2jojtipQaxoQIMAfCxea7Y\n" \
    "htsCIHQanzG9sS32N0WTatkx8tq8KbFTYGRDZuoNp8mdyWpn\n" \
    "-----END CERTIFICATE-----\n"

#endif
