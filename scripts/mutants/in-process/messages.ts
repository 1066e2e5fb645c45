// What the process that runs mutants and its host say to each other.

/** Tests by file, in the order in which the files are to be asked. */
export type TestSelection = readonly { readonly file: string; readonly tests: readonly string[] }[];

export type HostRequest =
  | { readonly kind: 'load'; readonly source: string; readonly files: readonly string[] }
  /** Runs the tests of a file twice. */
  | { readonly kind: 'observe'; readonly file: string }
  | { readonly kind: 'ask'; readonly mutantId: string; readonly selection: TestSelection };

/** A test that passes again and again. */
export interface ObservedTest {
  readonly file: string;
  readonly id: string;
  readonly ms: number;
  /** Mutants in the code that runs in it, or while its file is loaded. */
  readonly reached: readonly string[];
}

export type HostAnswer =
  /** With the mutants in the code that runs while the source is loaded. */
  | { readonly kind: 'loaded'; readonly reached: readonly string[] }
  /** `isWhole`: these are all tests of the file. */
  | { readonly kind: 'observed'; readonly tests: readonly ObservedTest[]; readonly isWhole: boolean }
  | { readonly kind: 'passed' }
  /** A test fails; when `isSpoilt` it fails without the mutant as well. */
  | { readonly kind: 'failed'; readonly isSpoilt: boolean; readonly file: string; readonly failure: string };
