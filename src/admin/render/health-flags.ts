// Why a host is not healthy, as /clusters writes it. The bits are those of the host's record in shared memory.

/** What the configuration says; JSON has one status for all three. */
export const CONFIGURED = { unhealthy: 0x4, degraded: 0x10, draining: 0x200 } as const;

/** Bit, text and key in JSON, in the order of output. */
export const HEALTH_FLAGS = [
  [0x1, '/failed_active_hc', 'failed_active_health_check'],
  [0x2, '/failed_outlier_check', 'failed_outlier_check'],
  [CONFIGURED.unhealthy, '/failed_eds_health', undefined],
  [0x8, '/degraded_active_hc', 'failed_active_degraded_check'],
  [CONFIGURED.degraded, '/degraded_eds_health', undefined],
  [0x20, '/pending_dynamic_removal', 'pending_dynamic_removal'],
  [0x40, '/pending_active_hc', 'pending_active_hc'],
  [0x80, '/excluded_via_immediate_hc_fail', 'excluded_via_immediate_hc_fail'],
  [0x100, '/active_hc_timeout', 'active_hc_timeout'],
  [CONFIGURED.draining, '/eds_status_draining', undefined],
] as const;

/** `healthy`, or every flag's text one after the other. */
export function formatHealthFlags(flags: number): string {
  const texts = HEALTH_FLAGS.filter(([bit]) => (flags & bit) !== 0).map(([, text]) => text);
  return texts.length === 0 ? 'healthy' : texts.join('');
}
