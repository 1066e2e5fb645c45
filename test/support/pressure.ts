// Pressure of the overload manager that comes from a file which the test writes.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { JsonObject } from './bootstrap.ts';

export const MONITORS = 'type.googleapis.com/envoy.extensions.resource_monitors';
export const INJECTED = 'envoy.resource_monitors.injected_resource';
export const AT_HALF: JsonObject = { name: INJECTED, threshold: { value: 0.5 } };

export interface PressureFile {
  readonly path: string;
  set(pressure: number): void;
}

let folder: string | undefined;
let files = 0;

/** A file that says how great the pressure is. */
export function pressureFile(): PressureFile {
  folder ??= ownFolder();
  files += 1;
  const file = path.join(folder, `pressure-${files}`);
  const set = (pressure: number): void => writeFileSync(file, `${pressure}`);
  set(0);
  return { path: file, set };
}

function ownFolder(): string {
  const made = mkdtempSync(path.join(tmpdir(), 'weir-pressure-'));
  process.once('exit', () => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** The monitor of a file. */
export function injected(file: string): JsonObject {
  return {
    name: INJECTED,
    typed_config: { '@type': `${MONITORS}.injected_resource.v3.InjectedResourceConfig`, filename: file },
  };
}

export function actionAtHalf(name: string): JsonObject {
  return { actions: [{ name: `envoy.overload_actions.${name}`, triggers: [AT_HALF] }] };
}
