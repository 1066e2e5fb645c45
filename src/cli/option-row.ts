// What the option table says of one option, and the types of values that follow from it.

interface RowBase {
  /** Long name without dashes. */
  readonly name: string;
  /** Letter of the short form. */
  readonly flag?: string;
  /** For --help: what the option does, with units and default. */
  readonly help: string;
  /**
   * `full`: works. `ignored`: accepted with a warning when it differs from its default, because running without
   * it is safe.
   */
  readonly support: 'full' | 'ignored';
  /** Place in command_line_options of /server_info (ascending); absent when not shown there. */
  readonly infoOrder?: number;
  /** Key there, when it is not the name in snake_case. */
  readonly infoKey?: string;
  /** How the value is written there, when not as it is. */
  readonly infoForm?: 'int64' | 'duration-s' | 'duration-ms' | 'pascal-case' | 'comma-list' | 'octal';
}

interface FlagRow extends RowBase {
  readonly kind: 'flag';
}

/** Text taken as it is. */
interface TextRow extends RowBase {
  readonly kind: 'text';
  readonly default: string;
}

/** One of a few words. */
interface ChoiceRow extends RowBase {
  readonly kind: 'choice';
  readonly default: string;
  readonly choices: readonly string[];
  /** Other spellings of a choice. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** Error for any other word, which follows it in quotes. */
  readonly complaint: string;
}

/** A whole number, 0 to 2^32 - 1. */
interface CountRow extends RowBase {
  readonly kind: 'count';
  readonly default: number;
  /** What documents say of a default that differs from machine to machine. */
  readonly defaultText?: string;
  /** Higher numbers are refused; --help says so. */
  readonly max?: number;
}

/** Text that may be given several times. */
interface TextsRow extends RowBase {
  readonly kind: 'texts';
}

export type OptionRow = FlagRow | TextRow | ChoiceRow | CountRow | TextsRow;

type CamelCase<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

type ValueOf<Row extends OptionRow> = Row extends FlagRow
  ? boolean
  : Row extends CountRow
    ? number
    : Row extends TextsRow
      ? readonly string[]
      : Row extends { readonly choices: readonly (infer Choice)[] }
        ? Choice
        : string;

/** The values of a whole table, by camel-case name. */
export type OptionValues<Row extends OptionRow> = {
  readonly [Each in Row as CamelCase<Each['name']>]: ValueOf<Each>;
};

/** `log-format` → `logFormat`. */
export function camelCase(name: string): string {
  return name.replace(/-(.)/g, (_dash, letter: string) => letter.toUpperCase());
}

/** The value of an option that was not given. */
export function defaultValue(row: OptionRow): string | number | boolean | readonly string[] {
  if (row.kind === 'flag') return false;
  return row.kind === 'texts' ? [] : row.default;
}
