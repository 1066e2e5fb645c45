// Why a host is not healthy, as /clusters writes it. The bits are those of the host's record in shared memory.

/** Bit and text, in the order of output. */
export const HEALTH_FLAGS = [
  [0x1, '/failed_active_hc'],
  [0x2, '/failed_outlier_check'],
  [0x4, '/failed_eds_health'],
  [0x8, '/degraded_active_hc'],
  [0x10, '/degraded_eds_health'],
  [0x20, '/pending_dynamic_removal'],
  [0x40, '/pending_active_hc'],
  [0x80, '/excluded_via_immediate_hc_fail'],
  [0x100, '/active_hc_timeout'],
  [0x200, '/eds_status_draining'],
] as const;

/** `healthy`, or every flag's text one after the other. */
export function formatHealthFlags(flags: number): string {
  const texts = HEALTH_FLAGS.filter(([bit]) => (flags & bit) !== 0).map(([, text]) => text);
  return texts.length === 0 ? 'healthy' : texts.join('');
}
