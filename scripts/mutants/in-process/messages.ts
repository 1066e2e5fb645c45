// What the process that runs mutants and its host say to each other.

/** Tests by file, in the order in which the files are to be asked. */
export type TestSelection = readonly { readonly file: string; readonly tests: readonly string[] }[];

export type HostRequest =
  | { readonly kind: 'load'; readonly source: string; readonly files: readonly string[] }
  /** Runs the tests of a file twice. */
  | { readonly kind: 'observe'; readonly file: string }
  | { readonly kind: 'ask'; readonly mutantId: string; readonly selection: TestSelection };

export interface ObservedTest {
  readonly id: string;
  readonly ms: number;
  /** Mutants in the code that runs in it, or while its file is loaded, when it is run for the second time. */
  readonly reached: readonly string[];
}

/** What is known of a test file whose tests were run twice. */
export interface ObservedFile {
  readonly file: string;
  /** Those that pass each time. */
  readonly tests: readonly ObservedTest[];
  /** These are all of them. */
  readonly isWhole: boolean;
  /** Mutants that were reached at any time, also in threads and programs. */
  readonly reached: readonly string[];
}

export type HostAnswer =
  /** With the mutants in the code that runs while the source is loaded. */
  | { readonly kind: 'loaded'; readonly reached: readonly string[] }
  | ({ readonly kind: 'observed' } & ObservedFile)
  /** `inFull`: files whose properties were all tried as often as they say. */
  | { readonly kind: 'passed'; readonly inFull: readonly string[] }
  /** A test fails; when `isSpoilt` it fails without the mutant as well. */
  | { readonly kind: 'failed'; readonly isSpoilt: boolean; readonly file: string; readonly failure: string };
