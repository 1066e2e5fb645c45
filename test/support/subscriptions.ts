// Subscriptions as a server has them, and such as a test answers itself.

import assert from 'node:assert/strict';
import { UnknownFieldPolicy } from '../../src/config/index.ts';
import type { ClusterManagerDependencies } from '../../src/control-plane/cluster-manager/cluster-manager.ts';
import { Sources, type SourcesDependencies } from '../../src/control-plane/subscription/sources.ts';
import type { SubscriptionRequest, Subscriptions } from '../../src/control-plane/subscription/subscription.ts';
import { type Logger, Loggers } from '../../src/log/index.ts';
import { NO_FAULTS } from './faults.ts';
import { ManualClock } from './manual-clock.ts';
import { NO_SECRETS_LEASED } from './no-secrets.ts';
import { statsFixture } from './stats.ts';

const SILENT = new Loggers({ levels: { default: 'off' }, sink: { write() {} }, threadId: 0 });

/** From files. */
export function fileSources(log: Logger = SILENT.get('config'), mode: 'reject' | 'warn' = 'warn'): Subscriptions {
  const clock = new ManualClock();
  return sourcesWith({ clock, unknownFields: new UnknownFieldPolicy(mode), log, faults: NO_FAULTS });
}

/** Without a management server. */
export function sourcesWith(
  own: Pick<SourcesDependencies, 'clock' | 'unknownFields' | 'log' | 'faults'>,
): Subscriptions {
  return new Sources({
    ...own,
    stats: statsFixture().store,
    watches: { follow: () => () => {} },
    cluster: () => undefined,
    resolvers: { hold: () => assert.fail('nobody is looked up') },
    aggregated: undefined,
    bootstrap: new Uint8Array(0),
    threadFlags: [],
    buildVersion: '',
  });
}

/** @param onRequest told of each; nothing else happens. */
export function answeredSources(onRequest: (request: SubscriptionRequest<never>) => void = () => {}): Subscriptions {
  return {
    subscribe(request) {
      onRequest(request as unknown as SubscriptionRequest<never>);
      return { start() {}, close() {} };
    },
  };
}

/** Of clusters none of which asks for anything. */
export const NO_DISCOVERY: Pick<
  ClusterManagerDependencies,
  'secrets' | 'subscriptions' | 'assignments' | 'scope' | 'hash' | 'onDeprecatedFields'
> = {
  secrets: NO_SECRETS_LEASED,
  subscriptions: answeredSources(),
  assignments: () => assert.fail('nobody asks for endpoints'),
  scope: () => assert.fail('nobody asks for endpoints'),
  hash: () => 0n,
  onDeprecatedFields: () => {},
};
