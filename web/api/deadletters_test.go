package api_test

import (
	"testing"
	"time"
)

// deadOnes creates n users whose e-mail failed permanently in one batch of the drop, and one more
// batch whose deadline has passed.
func (r *fixture) deadOnes(id string, n int) {
	r.Helper()
	for _, late := range []bool{false, true} {
		ends := time.Hour
		if late {
			ends = -time.Hour
		}
		batch := r.number(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, due_count, dead_count)
			select 'reminder', s.id, s.template_id, 1, case when $3 then 1001 else 1 end, case when $3 then 2000 else 1000 end, 'done', now(), now() + $2::interval, ''::bytea, 0, 0
			from slots s where s.template_id = $1::bigint and s.slot = 1 returning id`, id, ends, late)
		r.exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, fingerprint, attempts)
			select $1, g + case when $3 then 1000 else 0 end, 1, 'dead', 'attempts_used_up', 'status 503', 'status #', 8 from generate_series(1, $2::int) g`, batch, n, late)
	}
	r.exec(`insert into dead_letter_groups (channel, fingerprint, dead, first_at, last_at, sample) values (1, 'status #', $1, now(), now(), 'status 503')`, 2*n)
}

func testDeadLetters(t *testing.T) {
	r := newFixture(t, nil)
	id := r.drop(2 * time.Hour)
	r.deadOnes(id, 3)
	a := r.want(r.call(r.admin(), "GET", "/admin/dead-letters", nil), 200, "")
	if a.at("groups.0.channel") != "email" || a.at("groups.0.count") != 6.0 || a.at("groups.0.fingerprint") != "status #" {
		t.Fatalf("groups: %s", a.Body)
	}
	if a = r.want(r.call(r.admin(), "GET", "/admin/dead-letters?template_id="+id+"&user_id=2", nil), 200, ""); a.at("groups.0.count") != 1.0 {
		t.Fatalf("filtered: %s", a.Body)
	}
	r.exec(`insert into batches (id, kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, due_count, dead_count)
		overriding system value values (900, 'campaign', 9, 0, 1, 1, 1000, 'done', now(), now() + interval '1 hour', ''::bytea, 0, 0)`)
	r.exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, fingerprint, attempts)
		values (900, 5, 1, 'dead', 'attempts_used_up', 'status 404', 'status 404', 8)`)
	if a = r.want(r.call(r.admin(), "GET", "/admin/dead-letters?campaign_id=9", nil), 200, ""); a.at("groups.0.count") != 1.0 || a.at("groups.0.fingerprint") != "status 404" {
		t.Fatalf("of a campaign: %s", a.Body)
	}
	ofCampaign := map[string]any{"filter": map[string]any{"campaign_id": "9"}, "dry_run": true}
	if a = r.want(r.call(r.admin(), "POST", "/admin/dead-letters/discard", ofCampaign), 200, ""); a.at("total") != 1.0 {
		t.Fatalf("a dry run for a campaign: %s", a.Body)
	}
	r.want(r.call(r.admin(), "GET", "/admin/dead-letters?campaign_id=9223372036854775808", nil), 422, "invalid_request")
	r.exec(`delete from exceptions where batch_id = 900`)
	r.exec(`delete from batches where id = 900`)
	// Errors without a text are a kind of their own, in every form of the request.
	r.exec(`update exceptions set detail = '', fingerprint = '' where user_id = 2 and batch_id <> 900`)
	if a = r.want(r.call(r.admin(), "GET", "/admin/dead-letters?user_id=2&fingerprint=", nil), 200, ""); a.at("groups.0.count") != 1.0 || a.at("groups.1") != nil {
		t.Fatalf("without words: %s", a.Body)
	}
	if a = r.want(r.call(r.admin(), "GET", "/admin/dead-letters?user_id=3&fingerprint=", nil), 200, ""); a.at("groups.0") != nil {
		t.Fatalf("one with words is among those without: %s", a.Body)
	}
	wordless := map[string]any{"filter": map[string]any{"fingerprint": ""}, "dry_run": true}
	if a = r.want(r.call(r.admin(), "POST", "/admin/dead-letters/replay", wordless), 200, ""); a.at("total") != 1.0 {
		t.Fatalf("an order about those without words: %s", a.Body)
	}
	r.exec(`update exceptions set detail = 'status 503', fingerprint = 'status #' where user_id = 2`)
	order := map[string]any{"filter": map[string]any{"channel": "email", "fingerprint": "status #"}, "dry_run": true}
	a = r.want(r.call(r.admin(), "POST", "/admin/dead-letters/replay", order), 200, "")
	if a.at("total") != 6.0 || a.at("in_time") != 3.0 || a.at("too_late") != 3.0 || a.at("already_sent") != 0.0 || a.at("job") != nil {
		t.Fatalf("dry run: %s", a.Body)
	}
	if n := r.number(`select count(*) from dead_letter_jobs`); n != 0 {
		t.Fatal("a dry run started a job")
	}
	delete(order, "dry_run")
	order["reason"] = "a\x00b"
	r.want(r.call(r.admin(), "POST", "/admin/dead-letters/replay", order), 422, "invalid_request")
	order["reason"] = "provider is back"
	a = r.want(r.call(r.admin(), "POST", "/admin/dead-letters/replay", order), 202, "")
	if a.at("job.state") != "running" || a.at("job.total") != 6.0 {
		t.Fatalf("job: %s", a.Body)
	}
	if n := r.number(`select count(*) from audit where action = 'dead_letters.replay' and reason = 'provider is back'`); n != 1 {
		t.Fatalf("the reason is in %d audit entries", n)
	}
	a = r.want(r.call(r.admin(), "POST", "/admin/dead-letters/discard", map[string]any{"filter": map[string]any{"user_id": "1"}}), 202, "")
	if a.at("job.total") != 1.0 {
		t.Fatalf("discard: %s", a.Body)
	}
	if a = r.want(r.call(r.admin(), "GET", "/admin/dead-letters", nil), 200, ""); a.at("jobs.1.action") != "replay" {
		t.Fatalf("jobs: %s", a.Body)
	}
}

func TestDeadLetterRefusals(t *testing.T) {
	r := newFixture(t, nil)
	replay := func(filter map[string]any) map[string]any { return map[string]any{"filter": filter, "dry_run": true} }
	r.want(r.call(as(token(7)), "GET", "/admin/dead-letters", nil), 403, "forbidden")
	r.want(r.call(as(r.keys["read"]), "POST", "/admin/dead-letters/replay", map[string]any{"filter": map[string]any{}}), 403, "forbidden")
	r.want(r.call(r.admin(), "POST", "/admin/dead-letters/replay", replay(map[string]any{"channel": "pigeon"})), 422, "invalid_request")
	r.want(r.call(r.admin(), "POST", "/admin/dead-letters/replay", replay(map[string]any{"template_id": "99999999999999999999"})), 422, "invalid_request")
	r.want(r.call(r.admin(), "POST", "/admin/dead-letters/replay", map[string]any{"filter": map[string]any{}, "rate_per_second": -1}), 422, "invalid_request")
	r.want(r.call(r.admin(), "GET", "/admin/dead-letters?channel=x", nil), 422, "invalid_request")
}

func testExplain(t *testing.T) {
	r := newFixture(t, nil)
	id, me := r.drop(2*time.Hour), as(token(7))
	r.want(r.call(me, "GET", "/reservations/"+id+"/explain", nil), 404, "not_reserved")
	r.want(r.call(me, "GET", "/reservations/999/explain", nil), 404, "template_not_found")
	r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 10, "email", 5)), 201, "")
	a := r.want(r.call(me, "GET", "/reservations/"+id+"/explain", nil), 200, "")
	if a.at("steps.0.kind") != "reserved" || a.at("steps.1.kind") != "expected" || a.at("steps.1.minutes") != 10.0 ||
		a.at("steps.1.channel") != "app" || a.at("steps.2.channel") != "email" || a.at("reservation.slots") != "4098" {
		t.Fatalf("timeline: %s", a.Body)
	}
}
