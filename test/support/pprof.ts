// Reads profiles back: by a schema of its own, and by `go tool pprof` where that is installed.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import protobuf from 'protobufjs';
import { runProgram } from './child-process.ts';

/** The part of https://github.com/google/pprof/blob/main/proto/profile.proto that weir writes. */
const SCHEMA = `syntax = "proto3";
message Profile {
  repeated ValueType sample_type = 1; repeated Sample sample = 2; repeated Location location = 4;
  repeated Function function = 5; repeated string string_table = 6; int64 time_nanos = 9; int64 duration_nanos = 10;
  ValueType period_type = 11; int64 period = 12; int64 default_sample_type = 14;
}
message ValueType { int64 type = 1; int64 unit = 2; }
message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; repeated Label label = 3; }
message Label { int64 key = 1; int64 str = 2; }
message Location { uint64 id = 1; repeated Line line = 4; }
message Line { uint64 function_id = 1; int64 line = 2; }
message Function { uint64 id = 1; int64 name = 2; int64 system_name = 3; int64 filename = 4; int64 start_line = 5; }
`;
const PROFILE = protobuf.parse(SCHEMA, { keepCase: true }).root.lookupType('Profile');

interface RawProfile {
  readonly sample_type: readonly { readonly type: number; readonly unit: number }[];
  readonly sample: readonly {
    readonly location_id: readonly number[];
    readonly value: readonly number[];
    readonly label: readonly { readonly key: number; readonly str: number }[];
  }[];
  readonly location: readonly {
    readonly id: number;
    readonly line: readonly { readonly function_id: number; readonly line: number }[];
  }[];
  readonly function: readonly { readonly id: number; readonly name: number; readonly filename: number }[];
  readonly string_table: readonly string[];
  readonly time_nanos: number;
  readonly duration_nanos: number;
  readonly period: number;
  readonly default_sample_type: number;
}

export interface ReadSample {
  readonly thread: string;
  /** `name file:line`, the innermost first. */
  readonly stack: readonly string[];
  readonly values: readonly number[];
}

export interface ReadProfile {
  readonly types: readonly string[];
  readonly defaultType: string;
  readonly samples: readonly ReadSample[];
  readonly beganMs: number;
  readonly durationMs: number;
  readonly period: number;
}

export function readProfile(file: Uint8Array): ReadProfile {
  const message = PROFILE.decode(gunzipSync(file));
  const raw = PROFILE.toObject(message, { longs: Number, defaults: true, arrays: true }) as RawProfile;
  const text = (index: number): string => raw.string_table[index]!;
  const functions = new Map(raw.function.map((each) => [each.id, each]));
  const locations = new Map(
    raw.location.map(({ id, line: [line] }) => {
      const { name, filename } = functions.get(line!.function_id)!;
      return [id, `${text(name)} ${text(filename)}:${line!.line}`];
    }),
  );
  return {
    types: raw.sample_type.map(({ type, unit }) => `${text(type)}/${text(unit)}`),
    defaultType: text(raw.default_sample_type),
    samples: raw.sample.map(({ location_id, value, label: [label] }) => ({
      thread: label && text(label.key) === 'thread' ? text(label.str) : '',
      stack: location_id.map((id) => locations.get(id)!),
      values: value,
    })),
    beganMs: Math.round(raw.time_nanos / 1_000_000),
    durationMs: raw.duration_nanos / 1_000_000,
    period: raw.period,
  };
}

/** Whether Debian's package golang-go, or the like of it, is there. */
export async function hasGoTool(): Promise<boolean> {
  const { code } = await runProgram('sh', ['-c', 'go tool -n pprof']);
  return code === 0;
}

/** What `go tool pprof` prints of a profile. */
export async function goToolPprof(file: Uint8Array, ...options: readonly string[]): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-pprof-'));
  try {
    const name = path.join(folder, 'profile.pb.gz');
    writeFileSync(name, file);
    const env = { HOME: folder, PPROF_TMPDIR: folder };
    const { code, stdout, stderr } = await runProgram('go', ['tool', 'pprof', ...options, name], { env });
    if (code !== 0) throw new Error(stderr);
    return stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
