// What a bootstrap amounts to once it is read, checked and filled up with defaults. The control plane and
// the admin interface work from this; nothing after config/ looks at defaults or older spellings again.
// Main thread; frozen by convention: whoever needs a change loads anew.

import type { Address } from '../../base/address.ts';
import type { Version } from '../../base/version.ts';
import type {
  AccessLogSettings,
  ClusterSettings,
  ListenerSettings,
  Locality,
  StringMatch,
} from '../../snapshot/index.ts';
import type { DiscoverableResources } from '../discovery/discoverable-resources.ts';
import type { ConfigFault } from '../fault.ts';
import type { LogPathLook } from '../resources/access-log/log-path.ts';
import type { ExtensionManifests } from '../resources/extension-manifests.ts';
import type { StatSinkSettings } from '../resources/stat-sink.ts';
import type { DeprecatedFields, DisabledExtensions } from '../support/index.ts';
import type { ClusterManagerSettings } from './cluster-manager.ts';
import type { DynamicResourcesSettings } from './dynamic-resources.ts';
import type { OverloadSettings } from './overload.ts';
import type { RuntimeLayerSettings } from './runtime.ts';
import type { StoredMessages } from './stored-messages.ts';
import type { WatchdogsSettings } from './watchdog.ts';

/** Who this proxy is, after the command line has had its say. */
export interface NodeSettings {
  readonly id: string;
  readonly cluster: string;
  readonly locality: Locality;
  /** The Struct as plain JSON. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface AdminSettings {
  readonly address: Address;
  /** That of access_log_path first. */
  readonly accessLogs: readonly AccessLogSettings[];
  /** Where the CPU and heap profilers write. */
  readonly profilePath: string;
  /** Paths without query that may be asked for; all when empty. */
  readonly allowedPaths: readonly StringMatch[];
}

export interface FixedStatTag {
  readonly name: string;
  readonly value: string;
}

/** A tag that an expression takes out of stat names: its first group goes, its second is the value, or the first. */
export interface StatTagRule {
  readonly name: string;
  readonly pattern: string;
}

/** Stats by their whole names. */
export interface StatMatcher {
  /** Whether the stats that match are shown, or all others. */
  readonly showsMatching: boolean;
  readonly patterns: readonly StringMatch[];
}

export interface BucketSettings {
  readonly match: StringMatch;
  /** Ascending. */
  readonly bounds: readonly number[];
}

export interface BootstrapConfig extends ClusterManagerSettings {
  readonly node: NodeSettings;
  /** Absent when the bootstrap asks for no admin interface. */
  readonly admin?: AdminSettings;
  /** In the order of the file. */
  readonly listeners: readonly ListenerSettings[];
  /** In the order of the file. */
  readonly clusters: readonly ClusterSettings[];
  /** Where others come from while the proxy runs. */
  readonly dynamicResources: DynamicResourcesSettings;
  /** How those are read. */
  readonly discoverable: DiscoverableResources;
  /** In the order of the file: of those that have a key, the last wins. */
  readonly runtimeLayers: readonly RuntimeLayerSettings[];
  /** Time between flushes; 0 when stats are flushed only by the admin interface. */
  readonly statsFlushIntervalMs: number;
  readonly statsFlushOnAdmin: boolean;
  /** Value of the gauge server.version; undefined for that of the build. */
  readonly serverVersion: number | undefined;
  readonly watchdogs: WatchdogsSettings;
  /** Times of event loops are recorded. */
  readonly metersLoops: boolean;
  /** Undefined where there is no overload manager. */
  readonly overload: OverloadSettings | undefined;
  /** Prefix of the proxy's own headers without the final dash, `x-proxy`. Empty when not configured. */
  readonly headerPrefix: string;
  /** Layout of the log's lines, in the flags of --log-format; undefined for that of the command line. */
  readonly logFormat: string | undefined;
  /** Name of the cluster that this proxy and its like are members of; empty for none. */
  readonly localCluster: string;
  /** Tags that every stat carries (stats_config.stats_tags with fixed_value). */
  readonly fixedStatTags: readonly FixedStatTag[];
  /** Whether the built-in rules take tags out of stat names. */
  readonly useAllDefaultTags: boolean;
  /** Built-in rules by their names, where not all of them are wanted. */
  readonly defaultStatTags: readonly string[];
  readonly statTagRules: readonly StatTagRule[];
  /** Undefined to show all. */
  readonly shownStats: StatMatcher | undefined;
  /** Of histograms; the first that matches counts, and the default bounds where none does. */
  readonly bucketSettings: readonly BucketSettings[];
  /** In the order of the file. */
  readonly statSinks: readonly StatSinkSettings[];
  /** What all this was made of, with the node as it is now. */
  readonly messages: StoredMessages;
  /** Variables that it was read with; none when absent. */
  readonly environment?: LoadBootstrapInput['environment'];
}

export interface LoadBootstrapInput extends LogPathLook {
  /** Empty when only one of the others is given. */
  readonly configPath: string;
  /** JSON text in the place of the file; absent otherwise. */
  readonly configJson?: string | undefined;
  /** Text of --config-yaml, merged over the file; empty when not given. */
  readonly configYaml: string;
  /** Unknown fields are counted and warned of instead of refused. */
  readonly allowUnknownStaticFields: boolean;
  /** Override node.cluster, node.id and node.locality.zone when not empty. */
  readonly serviceCluster: string;
  readonly serviceNode: string;
  readonly serviceZone: string;
  /** What the node says of the program; nothing when absent. */
  readonly software?: Version;
  /** Those of this build; none when absent. */
  readonly extensions?: ExtensionManifests | undefined;
  /** The command line says how lines of the log look. */
  readonly hasLogFormat?: boolean;
  /** --log-format-escaped. */
  readonly logFormatEscaped?: boolean;
  /** None when absent. */
  readonly disabledExtensions?: DisabledExtensions;
  /** Variables that format strings may ask for with ENVIRONMENT; none when absent. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

export interface LoadBootstrapResult {
  /** Undefined when any fault is an error. */
  readonly bootstrap: BootstrapConfig | undefined;
  /** Errors and warnings, in the order of their places in the files. */
  readonly faults: readonly ConfigFault[];
  /** Unknown fields that were tolerated. */
  readonly unknownFields: number;
  /** Fields that later versions of the interface do without, with how often they are set: `Cluster.hosts`. */
  readonly deprecatedFields: DeprecatedFields;
}
