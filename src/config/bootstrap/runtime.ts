// Runtime layers of the bootstrap: what each of them says, as text under dotted keys, the form in which an operator
// sees them. Layers of files and those that come by discovery are read by the control plane, and the place of the one that an
// operator writes is kept. Which layers there are without any in the bootstrap: docs/decisions/0032.

import path from 'node:path';
import {
  CONNECTION_LIMIT,
  expectedValue,
  LISTENER_LIMITS,
  runtimeKey,
  runtimeValueFault,
} from '../../base/runtime-values.ts';
import type { ConfigSourceSettings } from '../../snapshot/index.ts';
import type { Bootstrap, RuntimeLayer_RtdsLayer, Struct } from '../proto/generated/messages.ts';
import { convertConfigSource } from '../resources/config-source.ts';
import type { Conversion } from '../resources/conversion.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { flatRuntimeValues, invalidEntryText } from '../resources/runtime-struct.ts';
import { fieldPath, itemPath } from '../source/field-path.ts';
import { quote } from '../source/node.ts';

/** One layer; those that come later in the list win. */
export interface RuntimeLayerSettings {
  readonly name: string;
  /** `admin`: empty at the start, written while the proxy runs. There is at most one. */
  readonly kind: 'static' | 'files' | 'discovered' | 'admin';
  /** Values as written, by their keys as written; of `static` only. */
  readonly values: ReadonlyMap<string, string>;
  /** Of `files`. */
  readonly files?: RuntimeFiles;
  /** Of `discovered`. */
  readonly discovery?: RuntimeDiscovery;
}

/** What a layer is asked for by. */
export interface RuntimeDiscovery {
  /** Name of the resource. */
  readonly resource: string;
  readonly source: ConfigSourceSettings;
}

/** Where a layer of files lies. */
export interface RuntimeFiles {
  /** Replaced as a whole, by another link that is moved over it. */
  readonly symlinkRoot: string;
  /** Below it, with its path. */
  readonly folder: string;
}

/** @param serviceCluster name of the node's cluster, which a layer of files may have for its last folder. */
export function convertRuntime(
  bootstrap: Bootstrap,
  serviceCluster: string,
  conversion: Conversion,
): readonly RuntimeLayerSettings[] {
  const { faults } = conversion;
  const { runtime, layered_runtime: layered } = bootstrap;
  if (layered !== null) {
    if (runtime !== null) faults.warning('runtime', 'has no effect beside layered_runtime');
    if (layered.layers.length === 0) return [adminLayer('')];
    return layered.layers.flatMap(
      ({ name, static_layer: values, disk_layer: disk, admin_layer: admin, rtds_layer: rtds }, index) => {
        if (admin !== null) return [adminLayer(name)];
        const at = itemPath('layered_runtime.layers', index);
        if (rtds !== null) return discoveredLayer(name, rtds, fieldPath(at, 'rtds_layer'), conversion);
        if (disk !== null) {
          const { symlink_root: root, subdirectory, append_service_cluster: appends } = disk;
          if (root === '') faults.warning(fieldPath(at, 'disk_layer'), 'has no symlink_root; the layer is left out');
          return filesLayer(name, root, subdirectory, appends ? serviceCluster : '');
        }
        return values === null ? [] : [staticLayer(name, values, fieldPath(at, 'static_layer'), bootstrap, faults)];
      },
    );
  }
  const base = runtime?.base ?? null;
  const values = base === null ? EMPTY_LAYER : staticLayer('base', base, 'runtime.base', bootstrap, faults);
  const { symlink_root: root = '', subdirectory = '', override_subdirectory: over = '' } = runtime ?? {};
  const overrides = over === '' ? [] : filesLayer('override', root, over, serviceCluster);
  return [values, ...filesLayer('root', root, subdirectory, ''), ...overrides, adminLayer('admin')];
}

/** None without a root. */
function filesLayer(name: string, symlinkRoot: string, subdirectory: string, last: string): RuntimeLayerSettings[] {
  if (symlinkRoot === '') return [];
  const folder = path.join(symlinkRoot, subdirectory, last);
  return [{ name, kind: 'files', values: new Map(), files: { symlinkRoot, folder } }];
}

/** @returns none where it cannot come. */
function discoveredLayer(
  name: string,
  { name: resource, rtds_config: config }: RuntimeLayer_RtdsLayer,
  at: string,
  conversion: Conversion,
): RuntimeLayerSettings[] {
  if (config === null) {
    conversion.faults.error(at, 'needs rtds_config, which says where it comes from');
    return [];
  }
  const source = convertConfigSource(config, fieldPath(at, 'rtds_config'), conversion);
  return source === undefined ? [] : [{ name, kind: 'discovered', values: new Map(), discovery: { resource, source } }];
}

const EMPTY_LAYER: RuntimeLayerSettings = { name: 'base', kind: 'static', values: new Map() };

function adminLayer(name: string): RuntimeLayerSettings {
  return { name, kind: 'admin', values: new Map() };
}

function staticLayer(
  name: string,
  struct: Struct,
  at: string,
  bootstrap: Bootstrap,
  faults: FaultSink,
): RuntimeLayerSettings {
  const { values, faulty } = flatRuntimeValues(struct);
  for (const key of faulty) faults.error(at, invalidEntryText(key));
  for (const [key, value] of values) checkEntry(key, value, at, bootstrap, faults);
  return { name, kind: 'static', values };
}

/** An entry that cannot have the effect its author expects gets a warning. */
function checkEntry(entry: string, value: string, at: string, bootstrap: Bootstrap, faults: FaultSink): void {
  const key = runtimeKey(entry);
  if (key.startsWith(LISTENER_LIMITS) && key.endsWith(CONNECTION_LIMIT)) {
    const listener = key.slice(LISTENER_LIMITS.length, -CONNECTION_LIMIT.length);
    const listeners = bootstrap.static_resources?.listeners ?? [];
    if (!listeners.some(({ name }) => name === listener)) {
      faults.warning(at, `${entry} has no effect: there is no listener ${quote(listener)}`);
    }
  }
  if (expectedValue(key) === 'none') faults.warning(at, `${entry} is not read by this build; it has no effect`);
  const fault = runtimeValueFault(key, value);
  if (fault !== undefined) faults.warning(at, `${entry} has no effect: ${quote(value)} ${fault}`);
}

/** What the last layer says that has the key, in either spelling; an empty text says nothing. */
export function runtimeValue(layers: readonly RuntimeLayerSettings[], key: string): string | undefined {
  let found: string | undefined;
  for (const { values } of layers) {
    for (const [entry, value] of values) if (value !== '' && runtimeKey(entry) === key) found = value;
  }
  return found;
}
