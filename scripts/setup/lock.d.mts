export declare function oneAtATime<Result>(file: string, work: () => Result, onWait: (pid: number) => void): Result;
