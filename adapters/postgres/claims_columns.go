package postgres

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"dropbell/domain/claim"
)

// couponColumns are template, user, claim, origin, key, instant and end of
// validity of what is issued.
func couponColumns(list []claim.Issue) []any {
	templates, users, ids := make([]int64, len(list)), make([]int64, len(list)), make([]int64, len(list))
	origins, keys := make([]string, len(list)), make([]string, len(list))
	issued, expires := make([]time.Time, len(list)), make([]time.Time, len(list))
	for i, n := range list {
		templates[i], users[i], ids[i] = n.Request.TemplateID, int64(n.Request.UserID), int64(n.Request.ID)
		origins[i], keys[i] = string(n.Request.Origin), n.Request.Key
		issued[i], expires[i] = n.Claim.At, n.ExpiresAt
	}
	return []any{templates, users, ids, origins, keys, issued, expires}
}

// secondColumns sums up by the second of the claim, which for one that a gate
// accepted is earlier than this transaction.
func secondColumns(list []claim.Issue) []any {
	type step struct {
		template int64
		second   time.Time
	}
	sums := map[step]int64{}
	for _, n := range list {
		sums[step{n.Request.TemplateID, n.Claim.At.UTC().Truncate(time.Second)}]++
	}
	var templates, counts []int64
	var seconds []time.Time
	for s, n := range sums {
		templates, seconds, counts = append(templates, s.template), append(seconds, s.second), append(counts, n)
	}
	return []any{templates, seconds, counts}
}

// countColumns are template, user and number of the holders, in their order.
func countColumns(list []claim.Issue) []any {
	holders, sums := holdersOf(list)
	templates, users, counts := make([]int64, len(holders)), make([]int64, len(holders)), make([]int32, len(holders))
	for i, h := range holders {
		templates[i], users[i], counts[i] = h.TemplateID, int64(h.UserID), sums[h]
	}
	return []any{templates, users, counts}
}

// expectedCounts are the arguments of [expectCounts].
func expectedCounts(list []claim.Issue, before map[claim.Holder]int) []any {
	holders, sums := holdersOf(list)
	var newTemplates, newUsers, templates, users []int64
	var counts, had, have []int32
	for _, h := range holders {
		if n := int32(before[h]); n > 0 {
			templates, users, had, have = append(templates, h.TemplateID), append(users, int64(h.UserID)), append(had, n), append(have, n+sums[h])
			continue
		}
		newTemplates, newUsers, counts = append(newTemplates, h.TemplateID), append(newUsers, int64(h.UserID)), append(counts, sums[h])
	}
	return []any{newTemplates, newUsers, counts, templates, users, had, have, len(holders)}
}

// holdersOf sums up what is issued by holder: one statement may not meet a row
// twice. The holders come in the order of template and user, as in every group.
func holdersOf(list []claim.Issue) ([]claim.Holder, map[claim.Holder]int32) {
	sums := make(map[claim.Holder]int32, len(list))
	for _, n := range list {
		sums[claim.Holder{TemplateID: n.Request.TemplateID, UserID: n.Request.UserID}]++
	}
	return slices.SortedFunc(maps.Keys(sums), func(a, b claim.Holder) int {
		return cmp.Or(cmp.Compare(a.TemplateID, b.TemplateID), cmp.Compare(a.UserID, b.UserID))
	}), sums
}
