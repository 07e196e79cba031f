/* The screens of `pillion help` that are not made of options: files, signals, exit statuses, and by
 * place what to paste where pillion is to run. The latter are the recipes of deploy/; a test compares
 * them. */
#include "cli/help.h"

#include "encode/encode.h"

void help_output(struct buf *out)
{
    buf_text(out, "Every window leaves these files in the output directory, named by the UTC time\n"
                  "of its end:\n\n");
    for (size_t i = 0; encoders[i]; i++) {
        const struct encoder *e = encoders[i];
        if (e->link)
            buf_printf(out, "  profile_2026-11-20T103104Z%-8s %s%s\n", e->extension, e->description,
                       e->by_default ? "" : ", if asked for");
    }
    buf_text(out, "\nLinks name the newest:\n\n");
    for (size_t i = 0; encoders[i]; i++)
        if (encoders[i]->link)
            buf_printf(out, "  %s\n", encoders[i]->link);
    buf_text(out, "\nA file appears under its name only when it is complete.\n\n"
                  "Every weight is CPU time. Time that was spent and could not be seen is in the\n"
                  "profile under names in brackets, such as [lost]: the sum is complete.\n");
}

const char help_signals[] =
    "Signals to the profiler's own process, which its first line names:\n"
    "\n"
    "  HUP         open the log file again, read tokens and certificates again, and\n"
    "              send what waits to be sent\n"
    "  USR1        write the running window now and go on\n"
    "  USR2        print the state\n"
    "  TERM, INT   write the last window and end\n"
    "\n"
    "With --launch init, signals sent to pillion itself go to the command.\n";

const char help_status[] =
    "With a command, the command's own exit status; besides that\n"
    "\n"
    "  125   pillion's command line is wrong\n"
    "  126   the command cannot be executed\n"
    "  127   the command was not found\n"
    "  128+N the command was killed by signal N\n"
    "\n"
    "Without a command\n"
    "\n"
    "  0     a profile was made\n"
    "  1     no profile could be made; the last line says why\n"
    "  2     pillion's command line is wrong\n";

const char help_fargate[] =
    "pillion on ECS with Fargate: three ways. deploy/fargate has each as a whole task\n"
    "definition that uploads: to the address in PILLION_SERVER_HOST, with the secret\n"
    "PILLION_TOKEN. Nobody may open perf events there, so Python functions are named\n"
    "and all other CPU time is counted per thread.\n"
    "\n"
    "1. In your image, in front of your program; needs no rights\n"
    "  in the Dockerfile  COPY pillion /usr/local/bin/pillion\n"
    "  \"entryPoint\": [\"/usr/local/bin/pillion\", \"-u\", \"-S\", \"checkout\", \"--\"],\n"
    "  \"command\": [\"python3\", \"/app/main.py\"]      your image's whole command line\n"
    "\n"
    "2. The image stays as it is (scratch, distroless): a container brings the file\n"
    "  that container     \"essential\": false, \"command\": [\"install\", \"/opt/pillion\"]\n"
    "  your program       \"dependsOn\": [{\"containerName\": \"pillion-install\",\n"
    "                                    \"condition\": \"SUCCESS\"}],\n"
    "                     \"entryPoint\": [\"/opt/pillion/pillion\", \"-u\", \"-S\",\n"
    "                                    \"checkout\", \"--\"]\n"
    "\n"
    "3. Beside your program, of which nothing changes: a sidecar\n"
    "  the task           \"pidMode\": \"task\"\n"
    "  the sidecar        \"user\": \"0\", \"cpu\": 512, \"essential\": false,\n"
    "                     \"linuxParameters\": {\"capabilities\":\n"
    "                       {\"drop\": [\"ALL\"], \"add\": [\"SYS_PTRACE\"]}},\n"
    "                     \"command\": [\"-a\", \"--continuous\", \"-u\", \"-S\", \"checkout\"]\n"
    "\n"
    "What pillion doctor says there, and what helps\n"
    "  EPERM: seccomp filter; Fargate forbids changing it       no fault, see above\n"
    "  it runs as another user (uid 1000)   \"user\": \"0\" and SYS_PTRACE, or its user\n"
    "  it has capabilities that pillion lacks                   SYS_PTRACE\n"
    "  No process 19 is visible in this PID namespace           \"pidMode\": \"task\"\n"
    "  CPU weight partial: few stacks can be proven             half the task's \"cpu\"\n";

const char help_containers[] =
    "pillion in containers: one static file for every image. No shell, libc, root or\n"
    "daemon is needed. `pillion doctor` says inside what works and what to change.\n"
    "\n"
    "In the image, in front of the program, which keeps signals and exit status\n"
    "  COPY pillion /usr/local/bin/pillion\n"
    "  ENTRYPOINT [\"/usr/local/bin/pillion\", \"-o\", \"/profiles\",\n"
    "              \"--max-output-files\", \"60\", \"--\"]\n"
    "  CMD [\"python3\", \"/app/main.py\"]             the program's whole command line\n"
    "\n"
    "In a container that runs, called web here\n"
    "  docker cp pillion web:/var/tmp/pillion\n"
    "  docker exec web /var/tmp/pillion -a -d 30 -o /var/tmp\n"
    "  docker cp -L web:/var/tmp/last_flamegraph.html .\n"
    "\n"
    "Beside it, from a container of its own (an image of pillion alone)\n"
    "  docker run --rm --pid container:web --user 0 --cap-add SYS_PTRACE \\\n"
    "    --cap-add PERFMON --cpu-shares 1024 --volume \"$PWD/profiles:/profiles\" \\\n"
    "    example.com/pillion:1 -a -d 30 -o /profiles\n"
    "  in a pod           shareProcessNamespace: true, and the same rights\n"
    "\n"
    "What is refused, and what opens it\n"
    "  perf events (EPERM, seccomp)   PERFMON with Docker from 23 on, else a profile\n"
    "                                 that allows perf_event_open; without, Python\n"
    "                                 functions are named and CPU time is counted\n"
    "  memory of another user         --user 0 --cap-add SYS_PTRACE, or as its user\n"
    "  few stacks are proven          the CPU weight of the program (--cpu-shares)\n"
    "  read-only root (EROFS)         -o with a volume\n"
    "  permission denied to start it  /tmp may be noexec: copy it to another folder\n"
    "\n"
    "More: pillion help fargate, pillion help alpine.\n";

const char help_alpine[] =
    "pillion with Alpine, distroless and scratch images: the file is static, so musl,\n"
    "glibc or neither does not matter. Programs for musl are profiled like others.\n"
    "\n"
    "Beside a container that runs, called web here: deploy/alpine/run.sh\n"
    "  ./run.sh web -d 30                        leaves profiles/last_flamegraph.html\n"
    "\n"
    "In an Alpine image, in front of the program\n"
    "  COPY pillion /usr/local/bin/pillion\n"
    "  ENTRYPOINT [\"/usr/local/bin/pillion\", \"-o\", \"/profiles\",\n"
    "              \"--max-output-files\", \"60\", \"--\"]\n"
    "  CMD [\"python3\", \"/app/main.py\"]             the program's whole command line\n"
    "\n"
    "Where there is no shell and no cp (scratch), pillion copies itself\n"
    "  docker run --rm --volume tools:/opt/pillion example.com/pillion:1 \\\n"
    "    install /opt/pillion\n"
    "  docker run --volume tools:/opt/pillion:ro --volume \"$PWD/profiles:/profiles\" \\\n"
    "    --entrypoint /opt/pillion/pillion IMAGE -o /profiles -- /server\n"
    "\n"
    "A program that was stripped is named by what it exports. More: pillion help\n"
    "containers.\n";
