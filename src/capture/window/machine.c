#include "capture/window/machine.h"
#include "capture/upload/sender.h"
#include "encode/encode.h"
#include "os/clock.h"

void machine_init(struct machine *m, const struct settings *settings)
{
    *m = (struct machine){.settings = settings, .began_wall_ns = clock_wall_ns(), .began_boot_ns = clock_boot_ns()};
}

void machine_learn(struct machine *m, struct uploader *uploader, unsigned formats)
{
    if (!m->settings->origin.metadata) {
        return;
    }
    if (uploader != NULL) {
        m->from = uploader_origin(uploader);
    } else if ((formats & encoder_bit("col")) != 0) {
        origin_gather(&m->here, m->settings, sender_variable, NULL);
        m->is_gathered = true;
        m->from = &m->here.facts;
    }
}

void machine_note(struct machine *m, struct profile *p)
{
    const struct origin *from = m->from;
    if (from == NULL) {
        return;
    }
    m->facts = (struct profile_machine){
        .private_ip = from->private_ip,
        .mac_address = from->mac_address,
        .os_name = from->os_name,
        .os_release = from->os_release,
        .kernel_release = from->kernel_release,
        .kernel_version = from->kernel_version,
        .hardware_type = from->hardware_type,
        .libc_type = from->libc_type,
        .libc_version = from->libc_version,
        .run_mode = from->run_mode,
        .deployment_type = from->deployment_type,
        .processors = from->processors,
        .memory_bytes = from->memory_bytes,
        .pid = from->pid,
        .spawn_wall_ns = m->began_wall_ns,
        .boot_ns = m->began_boot_ns,
    };
    p->meta.machine = &m->facts;
}

void machine_release(struct machine *m)
{
    if (m->is_gathered) {
        origin_release(&m->here);
    }
}
