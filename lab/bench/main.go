// Command bench runs the benchmarks: bench NAME flags, or bench all. bench/README.md describes
// the measurements.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"dropbell/lab/bench/campaign"
	"dropbell/lab/bench/cells"
	"dropbell/lab/bench/claimgate"
	"dropbell/lab/bench/claims"
	"dropbell/lab/bench/codes"
	"dropbell/lab/bench/console"
	"dropbell/lab/bench/consoles"
	"dropbell/lab/bench/coupons"
	"dropbell/lab/bench/curve"
	"dropbell/lab/bench/doors"
	"dropbell/lab/bench/draw"
	"dropbell/lab/bench/evening"
	"dropbell/lab/bench/fanout"
	"dropbell/lab/bench/flood"
	"dropbell/lab/bench/group"
	"dropbell/lab/bench/hooks"
	"dropbell/lab/bench/idle"
	"dropbell/lab/bench/inbox"
	"dropbell/lab/bench/large"
	"dropbell/lab/bench/network"
	"dropbell/lab/bench/nodes"
	"dropbell/lab/bench/peers"
	"dropbell/lab/bench/providers"
	"dropbell/lab/bench/push"
	"dropbell/lab/bench/qualify"
	"dropbell/lab/bench/receipts"
	"dropbell/lab/bench/recipes"
	"dropbell/lab/bench/redis"
	"dropbell/lab/bench/reserve"
	"dropbell/lab/bench/rush"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/segments"
	"dropbell/lab/bench/series"
	"dropbell/lab/bench/streams"
	"dropbell/lab/bench/waitlist"
	"dropbell/lab/bench/years"
)

var scenarios = map[string]scenario.Scenario{
	"campaign":  campaign.Scenario,
	"cells":     cells.Scenario,
	"claimgate": claimgate.Scenario,
	"claims":    claims.Scenario,
	"codes":     codes.Scenario,
	"console":   console.Scenario,
	"consoles":  consoles.Scenario,
	"coupons":   coupons.Scenario,
	"curve":     curve.Scenario,
	"doors":     doors.Scenario,
	"draw":      draw.Scenario,
	"evening":   evening.Scenario,
	"fanout":    fanout.Scenario,
	"flood":     flood.Scenario,
	"group":     group.Scenario,
	"hooks":     hooks.Scenario,
	"idle":      idle.Scenario,
	"inbox":     inbox.Scenario,
	"large":     large.Scenario,
	"network":   network.Scenario,
	"nodes":     nodes.Scenario,
	"peers":     peers.Scenario,
	"providers": providers.Scenario,
	"push":      push.Scenario,
	"qualify":   qualify.Scenario,
	"receipts":  receipts.Scenario,
	"recipes":   recipes.Scenario,
	"redis":     redis.Scenario,
	"reserve":   reserve.Scenario,
	"rush":      rush.Scenario,
	"segments":  segments.Scenario,
	"series":    series.Scenario,
	"streams":   streams.Scenario,
	"waitlist":  waitlist.Scenario,
	"years":     years.Scenario,
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	names := slices.Sorted(maps.Keys(scenarios))
	if len(args) == 0 {
		return errors.New("usage: bench NAME [flags], or bench all; the names are " + strings.Join(names, ", "))
	}
	if args[0] == "all" {
		return all(ctx, names)
	}
	add, ok := scenarios[args[0]]
	if !ok {
		return fmt.Errorf("there is no benchmark %q; the names are %s", args[0], strings.Join(names, ", "))
	}
	f := scenario.Flags{FlagSet: flag.NewFlagSet(args[0], flag.ExitOnError)}
	measure := add(f)
	_ = f.Parse(args[1:]) // ends the program if a flag is wrong
	return measure(ctx)
}

// all runs each benchmark in a process of its own, so that no benchmark leaves a full heap to
// the next.
func all(ctx context.Context, names []string) error {
	for _, name := range names {
		fmt.Println(name)
		cmd := scenario.Self(ctx, name)
		cmd.Stdout = os.Stdout
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
