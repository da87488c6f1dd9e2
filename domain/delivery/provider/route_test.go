package provider_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
)

func ids(list []provider.Provider) (ids []int64) {
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	return ids
}

// TestCandidates checks by example which providers may be handed a message, and which
// provider is asked first.
func TestCandidates(t *testing.T) {
	all := []provider.Provider{
		{ID: 1, Spec: provider.Spec{Enabled: true, Order: 2, Weight: 1}},
		{ID: 2, Spec: provider.Spec{Enabled: true, Order: 1, Weight: 1}},
		{ID: 3, Spec: provider.Spec{Enabled: true, Order: 9, Weight: 1, Countries: []string{"CN", "HK"}}},
		{ID: 4, Spec: provider.Spec{Enabled: false, Weight: 1}},
		{ID: 5, Spec: provider.Spec{Enabled: true, Order: 5, Weight: 1}, Shop: 7},
		{ID: 6, Spec: provider.Spec{Enabled: true, Weight: 1, Countries: []string{"JP"}}, Shop: 8},
	}
	for name, c := range map[string]struct {
		route provider.Route
		want  []int64
	}{
		"the lowest order first":               {provider.Route{}, []int64{2, 1}},
		"those that name the country first":    {provider.Route{Country: "HK"}, []int64{3, 2, 1}},
		"the shop's own alone":                 {provider.Route{Shop: 7, Country: "CN"}, []int64{5}},
		"the shop's own for its country":       {provider.Route{Shop: 8, Country: "JP"}, []int64{6}},
		"all shops' where the shop's do not":   {provider.Route{Shop: 8, Country: "CN"}, []int64{3, 2, 1}},
		"another shop's are none of this shop": {provider.Route{Shop: 9}, []int64{2, 1}},
	} {
		if got := ids(provider.Candidates(all, c.route)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := provider.Candidates(all[3:4], provider.Route{}); got != nil {
		t.Errorf("a disabled provider is a candidate: %v", got)
	}
}

// TestTheChosenIsTheFirstReady: for every configuration and all states of the circuits,
// the chosen provider is a ready candidate and no candidate of an earlier rank is ready.
// The choice stays the same until that provider is no longer ready.
func TestTheChosenIsTheFirstReady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		countries := rapid.SampledFrom([][]string{nil, {"CN"}, {"JP", "CN"}, {"US"}})
		var all []provider.Provider
		for i := range rapid.IntRange(0, 8).Draw(t, "providers") {
			all = append(all, provider.Provider{ID: int64(i + 1), Spec: provider.Spec{Enabled: rapid.Bool().Draw(t, "enabled"),
				Order: rapid.IntRange(0, 2).Draw(t, "order"), Weight: rapid.IntRange(1, 5).Draw(t, "weight"), Countries: countries.Draw(t, "countries")},
				Shop: int64(rapid.IntRange(0, 2).Draw(t, "shop"))})
		}
		route := provider.Route{Shop: int64(rapid.IntRange(0, 3).Draw(t, "of shop")), Country: rapid.SampledFrom([]string{"", "CN", "US"}).Draw(t, "country")}
		open := rapid.Uint16().Draw(t, "open")
		ready := func(id int64) bool { return open&(1<<id) == 0 }
		seed := rapid.Uint64().Draw(t, "seed")
		candidates := provider.Candidates(all, route)
		got, ok := provider.Choose(candidates, seed, ready)
		if ok != slices.ContainsFunc(candidates, func(p provider.Provider) bool { return ready(p.ID) }) {
			t.Fatalf("chosen: %v among %v", ok, ids(candidates))
		}
		if !ok {
			return
		}
		if !got.Enabled || !ready(got.ID) || got.Shop != 0 && got.Shop != route.Shop {
			t.Fatalf("%+v was chosen", got)
		}
		for _, p := range candidates {
			named := len(p.Countries) > 0 && len(got.Countries) == 0
			sooner := (len(p.Countries) > 0) == (len(got.Countries) > 0) && p.Order < got.Order
			if ready(p.ID) && (named || sooner) {
				t.Fatalf("%d was chosen before %d", got.ID, p.ID)
			}
		}
		other := rapid.Int64Range(1, 9).Draw(t, "another opens")
		again, _ := provider.Choose(candidates, seed, func(id int64) bool { return id != other && ready(id) })
		if other != got.ID && again.ID != got.ID {
			t.Fatalf("provider %d opened, and the message went from %d to %d", other, got.ID, again.ID)
		}
	})
}

// TestWeightsAreShares: of many messages each provider of one order gets its share.
func TestWeightsAreShares(t *testing.T) {
	all := []provider.Provider{
		{ID: 1, Spec: provider.Spec{Enabled: true, Weight: 1}},
		{ID: 2, Spec: provider.Spec{Enabled: true, Weight: 3}},
		{ID: 3, Spec: provider.Spec{Enabled: true, Weight: 6}}}
	const n = 20_000
	got := map[int64]int{}
	for seed := range uint64(n) {
		p, _ := provider.Choose(all, seed, func(int64) bool { return true })
		got[p.ID]++
	}
	for _, p := range all {
		if want := n * p.Weight / 10; got[p.ID] < want*9/10 || got[p.ID] > want*11/10 {
			t.Errorf("provider %d got %d of %d, want about %d", p.ID, got[p.ID], n, want)
		}
	}
}

// TestReached checks by example through which providers a channel's messages can go.
func TestReached(t *testing.T) {
	some := []provider.Provider{
		{ID: 1, Channel: delivery.SMS, Spec: provider.Spec{Enabled: true, Countries: []string{"CN"}}},
		{ID: 2, Channel: delivery.SMS}, {ID: 3, Channel: delivery.Email, Spec: provider.Spec{Enabled: true}}}
	all := append(slices.Clone(some), provider.Provider{ID: 4, Channel: delivery.SMS, Spec: provider.Spec{Enabled: true}})
	for name, c := range map[string]struct {
		list        []provider.Provider
		environment bool
		want        []int64
	}{
		"none":                                  {nil, true, []int64{0}},
		"one country's, and the environment's":  {some, true, []int64{1, 0}},
		"one country's":                         {some, false, []int64{1}},
		"every country's":                       {all, true, []int64{1, 4}},
		"a mini program beside the environment": {[]provider.Provider{{ID: 5, Channel: delivery.SMS, Kind: provider.WeChat, Spec: provider.Spec{Enabled: true}}}, true, []int64{0}},
	} {
		if got := provider.Reached(c.list, delivery.SMS, c.environment); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
