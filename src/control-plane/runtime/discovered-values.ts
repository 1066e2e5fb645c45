// A runtime layer that comes by discovery (RTDS): the values of one resource, which may change at any time. Main thread.

import {
  type DiscoveredResource,
  flatRuntimeValues,
  invalidEntryText,
  type RuntimeResource,
} from '../../config/index.ts';
import type { SubscriptionOwner } from '../subscription/subscription.ts';

/** @param name of the resource. @param onChanged called with its values, the first time, too. @param onAnswered of whatever kind. */
export function discoveredValues(
  name: string,
  onChanged: (values: ReadonlyMap<string, string>) => void,
  onAnswered: () => void,
): SubscriptionOwner<RuntimeResource> {
  return {
    onResponse(response) {
      const refusals = takeOver(
        name,
        [...response.offered()].map((each) => each.read()),
        onChanged,
      );
      onAnswered();
      return refusals;
    },
    onFailed: onAnswered,
  };
}

function takeOver(
  name: string,
  resources: readonly DiscoveredResource<RuntimeResource>[],
  onChanged: (values: ReadonlyMap<string, string>) => void,
): readonly string[] {
  const errors = resources.flatMap((resource) => (resource.isGood ? [] : resource.errors));
  if (errors.length > 0) return errors;
  if (resources.length !== 1)
    return [`it holds ${resources.length} runtime layers named ${JSON.stringify(name)} instead of 1`];
  const only = resources[0] as Extract<DiscoveredResource<RuntimeResource>, { readonly isGood: true }>;
  const { values, faulty } = flatRuntimeValues(only.resource.layer ?? { fields: {} });
  if (faulty.length > 0) return [faulty.map(invalidEntryText).join('; ')];
  onChanged(values);
  return [];
}
