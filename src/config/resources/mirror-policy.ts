// RequestMirrorPolicy messages → where copies of requests go: those of the route, or, where it has none, of its virtual
// host, or of the table.

import type { MirrorPolicy } from '../../snapshot/index.ts';
import type { Conversion } from './conversion.ts';
import { convertHeaderMutations } from './header-edits.ts';
import type { RequestMirrorPolicy, RouteActionMessage } from './messages.ts';
import { runtimeFractionOf } from './runtime-settings.ts';

const ALL = { numerator: 100, denominator: 100 };
/** Of the oldest form, where its key is not set. */
const NONE = { numerator: 0, denominator: 10_000 };

export function convertMirrorPolicies(
  messages: readonly RequestMirrorPolicy[],
  at: string,
  validateClusters: boolean,
  conversion: Conversion,
): readonly MirrorPolicy[] {
  return messages.flatMap((message, index) => {
    const policy = convertPolicy(message, `${at}[${index}]`, validateClusters, conversion);
    return policy === undefined ? [] : [policy];
  });
}

/** @returns those of the action, the oldest form included. */
export function mirrorPoliciesOf(
  message: RouteActionMessage,
  at: string,
  validateClusters: boolean,
  conversion: Conversion,
): readonly MirrorPolicy[] {
  const policies = convertMirrorPolicies(
    message.request_mirror_policies,
    `${at}.request_mirror_policies`,
    validateClusters,
    conversion,
  );
  if (policies.length > 0 || message.request_mirror_policy === null) return policies;
  const policy = convertPolicy(
    message.request_mirror_policy,
    `${at}.request_mirror_policy`,
    validateClusters,
    conversion,
  );
  return policy === undefined ? [] : [policy];
}

function convertPolicy(
  message: RequestMirrorPolicy,
  at: string,
  validateClusters: boolean,
  conversion: Conversion,
): MirrorPolicy | undefined {
  const { clusters, faults } = conversion;
  const { cluster, cluster_header, runtime_key } = message;
  if ((cluster === '') === (cluster_header === '')) {
    faults.error(at, 'needs either cluster or cluster_header');
    return undefined;
  }
  if (cluster !== '' && validateClusters) clusters.checkPresence(cluster, `${at}.cluster`, faults);
  return {
    cluster,
    clusterHeader: cluster_header.toLowerCase(),
    fraction:
      runtimeFractionOf(message.runtime_fraction) ??
      (runtime_key === '' ? { key: '', default: ALL } : { key: runtime_key, default: NONE }),
    appendsHostSuffix: !message.disable_shadow_host_suffix_append,
    hostRewrite: message.host_rewrite_literal,
    headEdits: convertHeaderMutations(message.request_headers_mutations, `${at}.request_headers_mutations`, conversion),
  };
}
