// A runtime layer that comes by discovery (RTDS): the values of one resource, which may change at any time. Main thread.

import { flatRuntimeValues, invalidEntryText, type readResponseFile } from '../../config/index.ts';
import type { SubscriptionOwner } from '../subscription/subscription.ts';

export const RUNTIME_RESOURCE = 'proxy.service.runtime.v3.Runtime';

type Resources = Extract<ReturnType<typeof readResponseFile<typeof RUNTIME_RESOURCE>>, { readonly version: string }>;
export type RuntimeResource = Resources['resources'][number];

/** @param name of the resource. @param onChanged called with its values, the first time, too. @param onAnswered once. */
export function discoveredValues(
  name: string,
  onChanged: (values: ReadonlyMap<string, string>) => void,
  onAnswered: () => void,
): SubscriptionOwner<RuntimeResource> {
  return {
    onResources(resources) {
      if (resources.length !== 1) return `it holds ${resources.length} runtime layers instead of 1`;
      const resource = resources[0]!;
      if (resource.name !== name)
        return `it holds the runtime layer ${JSON.stringify(resource.name)}, not ${JSON.stringify(name)}`;
      const { values, faulty } = flatRuntimeValues(resource.layer ?? { fields: {} });
      if (faulty.length > 0) return faulty.map(invalidEntryText).join('; ');
      onChanged(values);
      onAnswered();
      return undefined;
    },
    onFailed: onAnswered,
  };
}
