// Package scenario has the code that the benchmarks of the command bench share: their flags, the
// servers that they start, concurrent callers, and servers that run in a process of the command
// itself.
package scenario

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dropbell/lab/bench/stack"
)

// A Scenario is one benchmark. It adds its flags and returns the Run that measures with their
// values.
type Scenario func(Flags) Run

// Run measures and prints.
type Run func(ctx context.Context) error

// Measured is a Run on newly started servers with durable settings, which end with the run. It
// prints the properties of the machine.
func Measured(run func(ctx context.Context, s *stack.Stack) error) Run {
	return func(ctx context.Context) error {
		s, err := stack.Start(ctx)
		if err != nil {
			return err
		}
		defer s.Close()
		fmt.Println(stack.Machine(ctx, s))
		return run(ctx, s)
	}
}

// Flags are the flags of a scenario. A flag of several scenarios is a method, so that it has the
// same name and meaning in each.
type Flags struct{ *flag.FlagSet }

// Runs is the number of repetitions.
func (f Flags) Runs(n int) *int { return f.Int("runs", n, "repetitions") }

// Callers is the number of callers at a time.
func (f Flags) Callers(n int) *int { return f.Int("callers", n, "concurrent callers") }

// Numbers is a list of numbers, none of them negative.
func (f Flags) Numbers(name, list, usage string) *Numbers {
	n := new(Numbers)
	_ = n.Set(list) // a list in the source
	f.Var(n, name, usage+", separated by commas")
	return n
}

// CallersInTurn are the numbers of callers that are measured one after another.
func (f Flags) CallersInTurn(list string) *Numbers {
	return f.Numbers("callers", list, "concurrent callers")
}

// Lasting is the time of each measurement in whole seconds.
func (f Flags) Lasting(n int) *time.Duration {
	d := seconds(time.Duration(n) * time.Second)
	f.Var(&d, "seconds", "`seconds` per measurement")
	return (*time.Duration)(&d)
}

// Bin is the folder with programs of the product that were built before.
func (f Flags) Bin() *string {
	return f.String("bin", "", "folder with web and worker as built before; empty = build them")
}

// Numbers is the value of [Flags.Numbers].
type Numbers []int

// String is part of [flag.Value].
func (n Numbers) String() string {
	words := make([]string, len(n))
	for i, v := range n {
		words[i] = strconv.Itoa(v)
	}
	return strings.Join(words, ",")
}

// Set is part of [flag.Value].
func (n *Numbers) Set(text string) error {
	*n = nil
	if text == "" {
		return nil
	}
	for word := range strings.SplitSeq(text, ",") {
		v, err := strconv.Atoi(word)
		if err != nil || v < 0 {
			return fmt.Errorf("%q is not a number", word)
		}
		*n = append(*n, v)
	}
	return nil
}

// seconds is a duration that is written as a whole number of seconds.
type seconds time.Duration

func (s *seconds) String() string { return strconv.Itoa(int(time.Duration(*s) / time.Second)) }

func (s *seconds) Set(text string) error {
	n, err := strconv.Atoi(text)
	*s = seconds(time.Duration(n) * time.Second)
	return err
}
