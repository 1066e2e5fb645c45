// From where a configuration source says that resources come, to what brings them. Main thread.

import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { UnknownFieldPolicy } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import { FileSubscription } from './file-subscription.ts';
import type { Subscription, SubscriptionRequest, Subscriptions } from './subscription.ts';

export interface SourcesDependencies {
  readonly unknownFields: UnknownFieldPolicy;
  readonly log: Logger;
  readonly faults: FaultBoundary;
}

export class Sources implements Subscriptions {
  readonly #deps: SourcesDependencies;

  constructor(deps: SourcesDependencies) {
    this.#deps = deps;
  }

  subscribe<Resource>(request: SubscriptionRequest<Resource>): Subscription {
    return new FileSubscription(request.source.origin, request, this.#deps);
  }
}
