package coupons

import (
	"cmp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"dropbell/domain/claim"
)

// couponColumns are the parameter arrays of issued coupons: template, user,
// claim, origin, key, issue time and end of validity.
func couponColumns(list []claim.Issue) []any {
	templates, users, ids := make([]int64, len(list)), make([]int64, len(list)), make([]int64, len(list))
	origins, keys := make([]string, len(list)), make([]string, len(list))
	issued, expires := make(instants, len(list)), make(instants, len(list))
	for i, n := range list {
		templates[i], users[i], ids[i] = n.Request.TemplateID, int64(n.Request.UserID), int64(n.Request.ID)
		origins[i], keys[i] = string(n.Request.Origin), n.Request.Key
		issued[i], expires[i] = n.Claim.At, n.ExpiresAt
	}
	return []any{templates, users, ids, origins, keys, issued, expires}
}

// tapColumns are [couponColumns] of taps alone, without the origin.
func tapColumns(list []claim.Issue) []any {
	c := couponColumns(list)
	return append(c[:3:3], c[4:]...)
}

// secondColumns sums up issued coupons, and those that the waitlist gave, by the second of their claim. The second
// of a claim that a gate accepted is earlier than this transaction.
func secondColumns(list []claim.Issue) []any {
	type step struct {
		template int64
		second   time.Time
	}
	sums, waits := map[step]int64{}, map[step]int64{}
	for _, n := range list {
		s := step{n.Request.TemplateID, n.Claim.At.UTC().Truncate(time.Second)}
		if sums[s]++; n.Request.Origin == claim.ByWaitlist {
			waits[s]++
		}
	}
	var templates, counts, waited []int64
	var seconds []time.Time
	for s, n := range sums {
		templates, seconds, counts, waited = append(templates, s.template), append(seconds, s.second), append(counts, n), append(waited, waits[s])
	}
	return []any{templates, seconds, counts, waited}
}

// instants is a list of times that pgx encodes without a copy of each.
type instants []time.Time

type instant time.Time

// TimestamptzValue is part of [pgtype.TimestamptzValuer].
func (i *instant) TimestamptzValue() (pgtype.Timestamptz, error) {
	return pgtype.Timestamptz{Time: time.Time(*i), Valid: true}, nil
}

// Dimensions is part of [pgtype.ArrayGetter].
func (l instants) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(len(l)), LowerBound: 1}}
}

// Index is part of [pgtype.ArrayGetter].
func (l instants) Index(i int) any { return (*instant)(&l[i]) }

// IndexType is part of [pgtype.ArrayGetter].
func (l instants) IndexType() any { return new(instant) }

// countColumns are the template, user and number of coupons of each holder, in
// the holders' order.
func countColumns(list []claim.Issue) []any {
	holders, sums := holdersOf(list)
	templates, users := make([]int64, len(holders)), make([]int64, len(holders))
	for i, h := range holders {
		templates[i], users[i] = h.TemplateID, int64(h.UserID)
	}
	return []any{templates, users, sums}
}

// expectedCounts are the arguments of [expectCounts].
func expectedCounts(list []claim.Issue, before map[claim.Holder]int) []any {
	holders, sums := holdersOf(list)
	var newTemplates, newUsers, templates, users []int64
	var counts, had, have []int32
	for i, h := range holders {
		if n := int32(before[h]); n > 0 {
			templates, users, had, have = append(templates, h.TemplateID), append(users, int64(h.UserID)), append(had, n), append(have, n+sums[i])
			continue
		}
		newTemplates, newUsers, counts = append(newTemplates, h.TemplateID), append(newUsers, int64(h.UserID)), append(counts, sums[i])
	}
	return []any{newTemplates, newUsers, counts, templates, users, had, have, len(holders)}
}

// holdersOf sums up issued coupons by holder, because one statement may not
// change a row twice. The holders are ordered by template and user, as in every
// group.
func holdersOf(list []claim.Issue) (holders []claim.Holder, sums []int32) {
	all := make([]claim.Holder, len(list))
	for i := range list {
		all[i] = claim.Holder{TemplateID: list[i].Request.TemplateID, UserID: list[i].Request.UserID}
	}
	slices.SortFunc(all, func(a, b claim.Holder) int {
		if a.TemplateID != b.TemplateID {
			return cmp.Compare(a.TemplateID, b.TemplateID)
		}
		return cmp.Compare(a.UserID, b.UserID)
	})
	holders, sums = all[:0], make([]int32, 0, len(all))
	for _, h := range all {
		if n := len(holders); n > 0 && holders[n-1] == h {
			sums[n-1]++
			continue
		}
		holders, sums = append(holders, h), append(sums, 1)
	}
	return holders, sums
}
