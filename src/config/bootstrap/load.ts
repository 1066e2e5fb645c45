// From the files of an operator to a BootstrapConfig, with every fault there is. The steps, each of which
// goes on after faults of the one before as far as there is a message to look at:
//
//   read and merge (proto/load-message) → field rules (proto/rules) → support table (support/)
//   → settings and checks between fields (resources/) → checks between resources (bootstrap-checks)
//
// Used alike for serving, --mode validate and the library. Main thread, synchronous.

import { DiscoverableResources } from '../discovery/discoverable-resources.ts';
import { FaultList } from '../fault-list.ts';
import type { Bootstrap } from '../proto/generated/messages.ts';
import { type LoadedMessage, loadMessage } from '../proto/load-message.ts';
import type { Generation } from '../proto/message-names.ts';
import { type ProtoSchema, protoSchema } from '../proto/root.ts';
import { UnknownFieldPolicy } from '../proto/unknown-fields.ts';
import { ResourceChecks } from '../resource-checks.ts';
import { ClusterNames } from '../resources/conversion.ts';
import { type ExtensionManifests, NO_EXTENSIONS } from '../resources/extension-manifests.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { convertStatSinks } from '../resources/stat-sink.ts';
import { isSecured } from '../resources/upstream-transport.ts';
import { CONFIG_YAML_NAME } from '../source/source.ts';
import { type DeprecatedFields, NONE_DISABLED } from '../support/index.ts';
import { convertAdmin } from './admin.ts';
import { checkAppleLookups, checkBootstrap } from './bootstrap-checks.ts';
import type { BootstrapConfig, LoadBootstrapInput, LoadBootstrapResult } from './bootstrap-config.ts';
import { convertClusterManager } from './cluster-manager.ts';
import { DocumentFaults, inSourceOrder } from './document-faults.ts';
import { convertDynamicResources, sourceContext } from './dynamic-resources.ts';
import { checkImpliedExtensions, impliedByBootstrap } from './implied-extensions.ts';
import { convertLogFormat } from './log-format.ts';
import { completeNode, convertNode } from './node.ts';
import { convertOverload } from './overload.ts';
import { checkOwnSecrets } from './own-secrets.ts';
import { convertRuntime } from './runtime.ts';
import { bootstrapConversion, convertStaticResources } from './static-resources.ts';
import { convertStats } from './stats.ts';
import { storeMessages } from './stored-messages.ts';
import { convertWatchdogs } from './watchdog.ts';

export const BOOTSTRAP_TYPE = 'proxy.config.bootstrap.v3.Bootstrap';

type ConvertedBootstrap = Omit<BootstrapConfig, 'messages'>;

/** Reads the schema and its rules ahead of the first bootstrap, for a caller that has to wait for something else. */
export function prepareLoading(extensions: ExtensionManifests = NO_EXTENSIONS): void {
  const schema = protoSchema();
  schema.messageType(BOOTSTRAP_TYPE);
  ResourceChecks.of(schema, extensions);
}

/** Never throws for what operators write; a bootstrap comes back only when there is no error. */
export function loadBootstrap(input: LoadBootstrapInput): LoadBootstrapResult {
  const schema = protoSchema();
  const list = new FaultList();
  const unknownFields = UnknownFieldPolicy.forStatic(input);
  const loaded = loadMessage(schema.messageType(BOOTSTRAP_TYPE), input, { faults: list, unknownFields, schema });
  const examined = loaded && examine(loaded, input, list, schema);
  const config = examined?.config;
  return {
    bootstrap: list.hasErrors || config === undefined ? undefined : withMessages(config, loaded!, input, schema),
    faults: inSourceOrder(list.all, [input.configPath, CONFIG_YAML_NAME]),
    unknownFields: unknownFields.count,
    deprecatedFields: examined?.deprecatedFields ?? new Map(),
  };
}

function examine(
  { message, generation, document }: LoadedMessage,
  input: LoadBootstrapInput,
  list: FaultList,
  schema: ProtoSchema,
): { readonly config: ConvertedBootstrap; readonly deprecatedFields: DeprecatedFields } {
  const bootstrap = message as unknown as Bootstrap;
  const faults = new DocumentFaults(document, list);
  const type = schema.messageType(BOOTSTRAP_TYPE);
  const { extensions = NO_EXTENSIONS, disabledExtensions: disabled = NONE_DISABLED } = input;
  const checks = ResourceChecks.of(schema, extensions);
  const deprecatedFields = checks.check({ type, message, generation }, '', faults, disabled);
  checkImpliedExtensions(impliedByBootstrap(bootstrap), disabled, faults);
  return { config: convertBootstrap(bootstrap, generation, input, faults), deprecatedFields };
}

function withMessages(
  config: ConvertedBootstrap,
  { message }: LoadedMessage,
  input: LoadBootstrapInput,
  schema: ProtoSchema,
): BootstrapConfig {
  const bootstrap = message as unknown as Bootstrap;
  const node = completeNode(bootstrap.node, config.node, input, schema);
  const messages = storeMessages(schema.messageType(BOOTSTRAP_TYPE), { ...bootstrap, node });
  return { ...config, messages, environment: input.environment };
}

function convertBootstrap(
  bootstrap: Bootstrap,
  generation: Generation,
  input: LoadBootstrapInput,
  faults: FaultSink,
): ConvertedBootstrap {
  const node = convertNode(bootstrap.node, input);
  checkBootstrap(bootstrap, node, faults);
  const messages = bootstrap.static_resources?.clusters ?? [];
  const secured = messages.filter(isSecured).map(({ name }) => name);
  const clusters = new ClusterNames(
    messages.map(({ name }) => name),
    { secured },
  );
  const conversion = {
    ...bootstrapConversion(bootstrap, input, node, faults),
    sources: sourceContext(bootstrap, generation),
  };
  const runtimeLayers = convertRuntime(bootstrap, node.cluster, conversion);
  checkAppleLookups(bootstrap, runtimeLayers, faults);
  const { environment, findLogPathFault } = input;
  const admin = convertAdmin(bootstrap.admin, 'admin', {
    faults,
    clusters,
    environment,
    findLogPathFault,
    accessLoggers: input.extensions?.accessLoggers,
  });
  const resources = convertStaticResources(bootstrap, conversion);
  const dynamicResources = convertDynamicResources(bootstrap, conversion);
  checkOwnSecrets(resources.clusters, dynamicResources, faults);
  return {
    node,
    ...(admin === undefined ? {} : { admin }),
    ...resources,
    dynamicResources,
    discoverable: new DiscoverableResources(conversion, input.extensions, input.disabledExtensions),
    runtimeLayers,
    ...convertStats(bootstrap, faults),
    statSinks: convertStatSinks(bootstrap.stats_sinks, (input.extensions ?? NO_EXTENSIONS).statSinks, {
      faults,
      clusters,
    }),
    ...convertClusterManager(bootstrap, input, conversion),
    watchdogs: convertWatchdogs(bootstrap, faults),
    metersLoops: bootstrap.enable_dispatcher_stats,
    overload: convertOverload(bootstrap.overload_manager, faults),
    headerPrefix: bootstrap.header_prefix,
    logFormat: convertLogFormat(bootstrap, input, faults),
    localCluster: bootstrap.cluster_manager?.local_cluster_name ?? '',
  };
}
