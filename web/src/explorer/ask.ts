// Questions to the program, and its answers (isomer/explore/).
import { useEffect, useRef, useState } from "preact/hooks";
import type { Head, MixerView, Num } from "../data.ts";

export interface Question {
  preset?: string;
  settings?: Record<string, string>;
  text: string;
  layer?: number;
  head?: number;
  token?: number;
  other?: string;
}

export type HeadView = Pick<Head, "law" | "head" | "channels" | "features" | "averaged" | "causal" | "matrix" | "horizon" | "unfinished">;
export interface View extends Omit<MixerView, "heads" | "influence"> {
  layers: { preset: string; heads: { law: string; head: number }[] }[];
  layer: number;
  head: number;
  view: HeadView;
}
export interface Curves { sizes: [Num, Num][] | null; angles: [Num, Num][] | null; norm: Num[]; rank: Num[]; kept: Num[]; written: Num[] }
export interface State { token: number; complex: boolean; kept: Num[][]; written: Num[][]; eigenvalues: [Num, Num][] | null }
export interface Influence { token: number; word: string; other: string; moved: Num[] }
/** A value at the token, or what has a shape. */
export interface Term { heads?: number; size?: number; values?: Num[][]; shape?: number[]; norm?: Num; least?: Num; largest?: Num }
export interface Terms { token: number; terms: Record<string, Term> }
export interface Answers { view: View; maps: { layer: number; heads: HeadView[] }; curves: Curves; state: State; influence: Influence; terms: Terms }

/** What was answered last; while the next answer is under way, it stays. */
export interface Answered<T> { data?: T; error?: string; asked?: string; ms?: number; answered?: Question }

const GONE = "The program does not answer. Is isomer explore still running?";

async function ask<T>(look: string, question: string): Promise<Answered<T>> {
  try {
    const response = await fetch(`api/${look}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: question });
    const ms = Number(/dur=([\d.]+)/.exec(response.headers.get("Server-Timing") ?? "")?.[1]);
    const json = (await response.json()) as T & { error?: string };
    return response.ok ? { data: json, asked: question, answered: JSON.parse(question) as Question, ms } : { error: json.error ?? GONE, asked: question };
  } catch {
    return { error: GONE, asked: question };
  }
}

/** Asks whenever the question changes; one at a time, and of those that wait only the last. */
export function useAnswer<L extends keyof Answers>(look: L, question: Question | null): Answered<Answers[L]> {
  const [answered, setAnswered] = useState<Answered<Answers[L]>>({});
  const wanted = useRef<string | null>(null), busy = useRef(false);
  const key = question && JSON.stringify(question);
  useEffect(() => {
    wanted.current = key;
    const work = async () => {
      if (busy.current) return;
      busy.current = true;
      for (let done: string | null = null; wanted.current !== null && wanted.current !== done;) {
        done = wanted.current;
        const next = await ask<Answers[L]>(look, done);
        setAnswered((before) => (next.data ? next : { ...before, ...next }));
      }
      busy.current = false;
    };
    void work();
  }, [look, key]);
  return answered;
}

/** A value as it was when it last rested for some milliseconds; the first at once. */
export function useLater<T>(value: T, rest: number): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), rest);
    return () => clearTimeout(timer);
  }, [JSON.stringify(value)]);
  return rested;
}
