// Assignments that a test brings to clusters with endpoints by discovery, in the place of files and management servers.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type DiscoveredResponse, openResponseFile, UnknownFieldPolicy } from '../../src/config/index.ts';
import type { SubscriptionRequest, Subscriptions } from '../../src/control-plane/subscription/subscription.ts';
import type { AssignmentSettings, ClusterSettings } from '../../src/snapshot/index.ts';
import { clusterSettings, type JsonObject, mustLoad } from './bootstrap.ts';
import { answeredSources, NO_DISCOVERY } from './subscriptions.ts';

export const ASSIGNMENT = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment';

const DISCOVERABLE = mustLoad({}).discoverable;

type Request = SubscriptionRequest<AssignmentSettings>;

export class EndpointFeed implements Disposable {
  readonly #folder = mkdtempSync(path.join(tmpdir(), 'weir-endpoints-'));
  readonly #requests: Request[] = [];
  readonly subscriptions: Subscriptions = answeredSources((request) => {
    this.#requests.push(request as unknown as Request);
  });
  readonly deprecated: string[] = [];
  /** How often an assignment has been read. */
  reads = 0;
  #edition = 0;

  /** As a cluster manager needs it. */
  get discovery(): typeof NO_DISCOVERY {
    return {
      secrets: NO_DISCOVERY.secrets,
      subscriptions: this.subscriptions,
      assignments: (settings, isLocal) => {
        const type = DISCOVERABLE.assignments(settings, isLocal);
        const read: typeof type.read = (...given) => {
          this.reads += 1;
          return type.read(...given);
        };
        return { ...type, read, scope: this.#scope };
      },
      scope: () => this.#scope,
      hash: (text) => BigInt(text.length),
      onDeprecatedFields: (fields) => this.deprecated.push(...fields.keys()),
    };
  }

  get #scope(): string {
    return `${DISCOVERABLE.scope} ${this.#edition}`;
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }

  /** Who asks, in the order in which they came; the last one first that has asked for a name. */
  get asked(): readonly string[] {
    return this.#requests.flatMap(({ names }) => [...names!]);
  }

  /** @returns the response that the last one gets who has asked for the resource. */
  #open(resource: string, version: string, resources: readonly JsonObject[]) {
    const request = this.#requests.findLast(({ names }) => names!.has(resource))!;
    const file = path.join(this.#folder, 'response.json');
    const typed = resources.map((message) => ({ '@type': ASSIGNMENT, ...message }));
    writeFileSync(file, JSON.stringify({ version_info: version, resources: typed }));
    const response = openResponseFile(file, request.type(), new UnknownFieldPolicy('reject'), request.names);
    assert.ok('offered' in response);
    return { request, response: response as DiscoveredResponse<AssignmentSettings> };
  }

  /** To the last one who has asked for the resource. @returns why it is refused. */
  respond(
    resource: string,
    version: string,
    resources: readonly JsonObject[],
    fields: Partial<DiscoveredResponse<AssignmentSettings>> = {},
  ): readonly string[] {
    const { request, response } = this.#open(resource, version, resources);
    const attempt = request.stats.attempt();
    const refusals = request.owner.onResponse({ ...response, ...fields }) as readonly string[];
    if (refusals.length === 0) attempt.updated(version);
    else attempt.rejected();
    return refusals;
  }

  /** What the last one who has asked for it was told comes again. @returns whether that is all that it has to hear. */
  repeat(resource: string, version: string): boolean {
    return this.#requests.findLast(({ names }) => names!.has(resource))!.owner.onRepeated!(version);
  }

  /** Resources are read otherwise from now on. */
  renew(): void {
    this.#edition += 1;
  }

  fail(resource: string): void {
    this.#requests.findLast(({ names }) => names!.has(resource))!.owner.onFailed();
  }
}

/** Its endpoints come from a file that nobody reads. */
export function edsCluster(fields: JsonObject = {}, config: JsonObject = {}): ClusterSettings {
  const eds_cluster_config = { eds_config: { path: '/nowhere/endpoints.json' }, ...config };
  return clusterSettings({ name: 'web', type: 'EDS', eds_cluster_config, ...fields });
}
