// From the files of an operator to a BootstrapConfig, with every fault there is. The steps, each of which
// goes on after faults of the one before as far as there is a message to look at:
//
//   read and merge (proto/load-message) → field rules (proto/rules) → support table (support/)
//   → settings and checks between fields (resources/) → checks between resources (bootstrap-checks)
//
// Used alike for serving, --mode validate and the library. Main thread, synchronous.

import { FaultList } from '../fault-list.ts';
import { unpackAny } from '../proto/any.ts';
import type { Bootstrap } from '../proto/generated/messages.ts';
import { type LoadedMessage, loadMessage } from '../proto/load-message.ts';
import { type ProtoSchema, protoSchema } from '../proto/root.ts';
import { Validator } from '../proto/rules/validator.ts';
import { UnknownFieldPolicy } from '../proto/unknown-fields.ts';
import { ClusterNames } from '../resources/conversion.ts';
import { type ExtensionManifests, NO_EXTENSIONS } from '../resources/extension-manifests.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { convertStatSinks } from '../resources/stat-sink.ts';
import { isSecured } from '../resources/upstream-transport.ts';
import { CONFIG_YAML_NAME } from '../source/source.ts';
import { type DeprecatedFields, NONE_DISABLED, SupportCheck, supportWith } from '../support/index.ts';
import { convertAdmin } from './admin.ts';
import { checkAppleLookups, checkBootstrap } from './bootstrap-checks.ts';
import type { BootstrapConfig, LoadBootstrapInput, LoadBootstrapResult } from './bootstrap-config.ts';
import { convertClusterManager } from './cluster-manager.ts';
import { DocumentFaults, inSourceOrder } from './document-faults.ts';
import { checkImpliedExtensions } from './implied-extensions.ts';
import { convertLogFormat } from './log-format.ts';
import { completeNode, convertNode } from './node.ts';
import { convertOverload } from './overload.ts';
import { convertRuntime } from './runtime.ts';
import { convertStaticResources } from './static-resources.ts';
import { convertStats } from './stats.ts';
import { storeMessages } from './stored-messages.ts';
import { convertWatchdogs } from './watchdog.ts';

export const BOOTSTRAP_TYPE = 'proxy.config.bootstrap.v3.Bootstrap';

type ConvertedBootstrap = Omit<BootstrapConfig, 'messages'>;

interface SchemaChecks {
  readonly rules: Validator;
  readonly support: SupportCheck;
}

/** Both compile what they check, so there is one pair for each schema and set of extensions. */
const checksOf = new WeakMap<ProtoSchema, WeakMap<ExtensionManifests, SchemaChecks>>();

/** Reads the schema and its rules ahead of the first bootstrap, for a caller that has to wait for something else. */
export function prepareLoading(extensions: ExtensionManifests = NO_EXTENSIONS): void {
  const schema = protoSchema();
  schema.messageType(BOOTSTRAP_TYPE);
  checksFor(schema, extensions);
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
  const { rules, support } = checksFor(schema, input.extensions ?? NO_EXTENSIONS);
  rules.validate({ type, message, generation }, '', {
    report: (at, text) => faults.error(at, text),
    unpack: (any) => unpackAny(any, schema),
  });
  const { disabledExtensions: disabled = NONE_DISABLED } = input;
  const deprecatedFields = support.check(BOOTSTRAP_TYPE, bootstrap, '', faults, disabled);
  checkImpliedExtensions(bootstrap, disabled, faults);
  return { config: convertBootstrap(bootstrap, input, faults), deprecatedFields };
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

function checksFor(schema: ProtoSchema, extensions: ExtensionManifests): SchemaChecks {
  const byExtensions = checksOf.get(schema) ?? new WeakMap<ExtensionManifests, SchemaChecks>();
  checksOf.set(schema, byExtensions);
  let checks = byExtensions.get(extensions);
  if (checks === undefined) {
    const support = new SupportCheck(supportWith(extensions), (name) => schema.messageType(name));
    checks = { rules: new Validator(), support };
    byExtensions.set(extensions, checks);
  }
  return checks;
}

function convertBootstrap(bootstrap: Bootstrap, input: LoadBootstrapInput, faults: FaultSink): ConvertedBootstrap {
  const node = convertNode(bootstrap.node, input);
  checkBootstrap(bootstrap, node, faults);
  const runtimeLayers = convertRuntime(bootstrap, node.cluster, faults);
  checkAppleLookups(bootstrap, runtimeLayers, faults);
  const messages = bootstrap.static_resources?.clusters ?? [];
  const secured = messages.filter(isSecured).map(({ name }) => name);
  const clusters = new ClusterNames(
    messages.map(({ name }) => name),
    secured,
  );
  const { environment, findLogPathFault } = input;
  const admin = convertAdmin(bootstrap.admin, 'admin', {
    faults,
    clusters,
    environment,
    findLogPathFault,
    accessLoggers: input.extensions?.accessLoggers,
  });
  return {
    node,
    ...(admin === undefined ? {} : { admin }),
    ...convertStaticResources(bootstrap, input, node, faults),
    runtimeLayers,
    ...convertStats(bootstrap, faults),
    statSinks: convertStatSinks(bootstrap.stats_sinks, (input.extensions ?? NO_EXTENSIONS).statSinks, {
      faults,
      clusters,
    }),
    ...convertClusterManager(bootstrap, input, faults),
    watchdogs: convertWatchdogs(bootstrap, faults),
    metersLoops: bootstrap.enable_dispatcher_stats,
    overload: convertOverload(bootstrap.overload_manager, faults),
    headerPrefix: bootstrap.header_prefix,
    logFormat: convertLogFormat(bootstrap, input, faults),
    localCluster: bootstrap.cluster_manager?.local_cluster_name ?? '',
  };
}
