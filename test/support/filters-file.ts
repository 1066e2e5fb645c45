// Configurations of filters as a file of resources, and what a proxy shows of them.

import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import type { JsonObject } from './bootstrap.ts';
import type { WeirProcess } from './weir-process.ts';

export const EXTENSION = 'config.core.v3.TypedExtensionConfig';

export const filterResource = (typed_config: JsonObject, name = 'late'): JsonObject => ({ name, typed_config });

export class FiltersFile {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'weir-filters-'));
  readonly path = path.join(this.folder, 'filters.json');

  constructor(t: TestContext) {
    t.after(() => rmSync(this.folder, { recursive: true }));
  }

  write(version: string, ...resources: readonly JsonObject[]): void {
    const typed = resources.map((each) => ({ '@type': `type.googleapis.com/envoy.${EXTENSION}`, ...each }));
    writeFileSync(`${this.path}.next`, JSON.stringify({ version_info: version, resources: typed }));
    renameSync(`${this.path}.next`, this.path);
  }

  source(fields: JsonObject = {}): JsonObject {
    return { path_config_source: { path: this.path }, ...fields };
  }
}

export interface DumpedFilter {
  readonly version_info?: string;
  readonly client_status: string;
  readonly ecds_filter?: { readonly name: string; readonly typed_config: { readonly '@type': string } };
  readonly error_state?: { readonly details: string; readonly version_info: string };
}

export async function dumpedFilters(weir: WeirProcess): Promise<readonly DumpedFilter[]> {
  const text = await weir.admin('/config_dump?resource=ecds_filters').catch(() => '{}');
  return (JSON.parse(text) as { configs?: DumpedFilter[] }).configs ?? [];
}
