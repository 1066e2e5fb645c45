// Clusters, their endpoints and listeners that come by discovery are read as those of the bootstrap are: the same checks, the same conversions, with
// what the bootstrap says for all resources.

import type {
  AssignmentSettings,
  ClusterSettings,
  EdsDiscoverySettings,
  ListenerSettings,
} from '../../snapshot/index.ts';
import { checkImpliedExtensions, impliedByCluster, impliedByListener } from '../bootstrap/implied-extensions.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { protoSchema } from '../proto/root.ts';
import { ResourceChecks } from '../resource-checks.ts';
import { convertCluster } from '../resources/cluster.ts';
import { ClusterNames, type Conversion } from '../resources/conversion.ts';
import type { DnsCacheNames } from '../resources/dns-cache-names.ts';
import { type ExtensionManifests, NO_EXTENSIONS } from '../resources/extension-manifests.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { convertListener } from '../resources/listener.ts';
import { convertDiscoveredAssignment } from '../resources/load-assignment.ts';
import { fieldPath } from '../source/field-path.ts';
import { type DisabledExtensions, NONE_DISABLED } from '../support/index.ts';
import type { ResourceType } from './resource-type.ts';

const CLUSTER_TYPE = 'proxy.config.cluster.v3.Cluster';
const ASSIGNMENT_TYPE = 'proxy.config.endpoint.v3.ClusterLoadAssignment';
const LISTENER_TYPE = 'proxy.config.listener.v3.Listener';

let nextScope = 0;

export class DiscoverableResources {
  readonly #conversion: Conversion;
  readonly #extensions: ExtensionManifests;
  readonly #disabled: DisabledExtensions;
  /** No other bootstrap has had it. */
  readonly #scope = `bootstrap ${nextScope++}`;

  /** @param conversion of the bootstrap. */
  constructor(
    conversion: Conversion,
    extensions: ExtensionManifests = NO_EXTENSIONS,
    disabled: DisabledExtensions = NONE_DISABLED,
  ) {
    this.#conversion = conversion;
    this.#extensions = extensions;
    this.#disabled = disabled;
  }

  /** For one response. */
  clusters(): ResourceType<ClusterSettings> {
    const scene = this.#scene(this.#conversion.clusters);
    const type = this.#type<MessageTypes[typeof CLUSTER_TYPE], ClusterSettings>(
      CLUSTER_TYPE,
      (message, at, faults) => {
        checkImpliedExtensions(impliedByCluster(message, at), this.#disabled, faults);
        return convertCluster(message, at, { ...scene, faults });
      },
      scene.dnsCaches,
    );
    return { ...type, scope: this.#scope };
  }

  /** For one response. @param clusterNames of those that there are. */
  listeners(clusterNames: Iterable<string>): ResourceType<ListenerSettings> {
    const scene = this.#scene(new ClusterNames(clusterNames, { areComplete: false }));
    return this.#type<MessageTypes[typeof LISTENER_TYPE], ListenerSettings>(LISTENER_TYPE, (message, at, faults) => {
      // Without one nobody could say later which of them has changed.
      if (message.name === '') faults.error(fieldPath(at, 'name'), 'is required of a listener that discovery brings');
      checkImpliedExtensions(impliedByListener(message, at), this.#disabled, faults);
      return convertListener(message, at, { ...scene, faults });
    });
  }

  /** Of one cluster. @param isLocal this proxy belongs to it. */
  assignments(settings: EdsDiscoverySettings, isLocal: boolean): ResourceType<AssignmentSettings> {
    const type = this.#type<MessageTypes[typeof ASSIGNMENT_TYPE], AssignmentSettings>(
      ASSIGNMENT_TYPE,
      (message, at, faults) => convertDiscoveredAssignment(message, at, settings, isLocal, faults),
    );
    return {
      ...type,
      scope: this.#scope,
      nameOf: (message) => (message as MessageTypes[typeof ASSIGNMENT_TYPE]).cluster_name,
    };
  }

  /** Without who is told of faults. */
  #scene(clusters: ClusterNames): Omit<Conversion, 'faults'> {
    return { ...this.#conversion, clusters, dnsCaches: this.#conversion.dnsCaches?.copy() };
  }

  #type<Message, Settings>(
    typeName: string,
    convert: (message: Message, at: string, faults: FaultSink) => Settings | undefined,
    dnsCaches?: DnsCacheNames,
  ): ResourceType<Settings> {
    const checks = ResourceChecks.of(protoSchema(), this.#extensions);
    return {
      typeName,
      nameOf: (message) => (message as { readonly name: string }).name,
      scope: undefined,
      read: (content, at, faults) => {
        const deprecatedFields = checks.check(content, at, faults, this.#disabled);
        const comparisons = dnsCaches?.comparisons;
        const resource = convert(content.message as unknown as Message, at, faults);
        return { resource, deprecatedFields, standsAlone: dnsCaches?.comparisons === comparisons };
      },
    };
  }
}
