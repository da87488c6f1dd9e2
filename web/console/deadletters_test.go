package console

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/console/shell"
)

// fails answers for the users who have a cause, and takes the others.
func fails(causes map[user.ID]delivery.Result) func(delivery.Message) delivery.Result {
	return func(m delivery.Message) delivery.Result {
		if r, ok := causes[m.To.ID]; ok {
			return r
		}
		return takes(m)
	}
}

// buried is a rig with three reminders, of which two are dead.
func buried(t *testing.T) *rig {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	for id := user.ID(1001); id <= 1003; id++ {
		g.book(d, id, delivery.App, 5)
	}
	g.fire(d, 1, fails(map[user.ID]delivery.Result{1001: {Detail: "HTTP 503"}, 1002: {Status: delivery.Permanent}}))
	return g
}

func TestDeadLettersAreShownToEverybody(t *testing.T) {
	g := newRig(t)
	viewer := g.as(staff.Viewer)
	viewer.get("/dead-letters").is(200).has("No dead letters", "Messages that a provider refuses permanently").hasNot("/dead-letters/replay")
	d := g.published(10, 2*time.Hour)
	for id := user.ID(1001); id <= 1003; id++ {
		g.book(d, id, delivery.App, 5)
	}
	g.fire(d, 1, fails(map[user.ID]delivery.Result{1001: {Detail: "HTTP 503"}, 1002: {Status: delivery.Permanent}}))
	viewer.get("/dead-letters").is(200).has("2 dead letters", "in 2 groups", "HTTP 503", "no answer recorded").hasNot("/dead-letters/replay", "/dead-letters/discard")
	for query, want := range map[string][]string{"channel=app": {"2 dead letters"}, "template=1": {"2 dead letters"}, "user=1001": {"1 dead letter", "HTTP 503"},
		"channel=email": {"No matches"}, "user=1003": {"No matches"}, "template=99": {"No matches"}} {
		viewer.get("/dead-letters?" + query).is(200).has(want...)
	}
	operator := g.as(staff.Operator)
	for query, told := range map[string]string{"user=ada": "That is not a number", "template=-1": "That is not a number", "campaign=x": "That is not a number",
		"channel=pigeon": "There is no such channel", "user=99999999999999999999": "That is not a number"} {
		viewer.get("/dead-letters?"+query).is(200).has(told, `aria-invalid="true"`).hasNot("HTTP 503")
		viewer.get("/dead-letters/list?" + query).to("/dead-letters?" + query)
		operator.get("/dead-letters/replay?" + query).to("/dead-letters?" + query)
		operator.get("/dead-letters/discard?" + query).to("/dead-letters?" + query)
	}
	viewer.get("/dead-letters.csv?channel=pigeon&user=ada").is(http.StatusUnprocessableEntity).
		has("Some input is not valid", "Channel: choose one.", "User ID: must be a positive whole number.").hasNot("has changed in the meantime")
	// A kind of error without any words is a kind of its own.
	viewer.get("/dead-letters/list?channel=app&fingerprint=").is(200).has("/templates/1/users/1002").hasNot("/users/1001")
	viewer.htmx().get("/dead-letters?user=1001").is(200).has("HTTP 503").hasNot("<html")
}

// A campaign's letters are told by its name and lead to it, whatever template
// it is about; the people lead to their own pages, which are there.
func TestDeadLettersOfCampaigns(t *testing.T) {
	g := buried(t)
	g.exec(`insert into users (id) values (5), (6)`)
	g.exec(`insert into campaigns (id, shop_number, name, channel, content, audience, starts_at, ends_at, state, creator, created_by) overriding system value
		select n, 10, 'Spring ' || n, 0, '{}', '{"kind": "all"}', now(), now() + interval '1 hour', 'finished', 'staff:1', 'staff:1' from generate_series(71, 72) n`)
	g.exec(`insert into batches (id, kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, due_count, dead_count)
		overriding system value select 900 + n, 'campaign', 70 + n, n - 1, 0, 1, 1000, 'done', now(), now() + interval '1 hour', ''::bytea, 1, 1 from generate_series(1, 2) n`)
	g.exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, fingerprint, attempts)
		select 900 + n, 4 + n, 0, 'dead', 'attempts_used_up', 'HTTP 404', 'http #', 8 from generate_series(1, 2) n`)
	b := g.as(staff.Operator, 10)
	b.get("/dead-letters/list").is(200).has(`href="/users/5"`, `href="/users/6"`, `href="/campaigns/71"`, "Spring 71", "Spring 72", `href="/templates/1/users/1001"`).
		hasNot("/templates/0", "/templates/1/users/6", "#0")
	b.get("/users/5").is(200)
	b.get("/dead-letters?campaign=71").is(200).has("1 dead letter", `name="campaign"`, `value="71"`)
	b.get("/dead-letters/list?campaign=72").is(200).has("Spring 72", "campaign #72").hasNot("Spring 71", "/users/5")
	b.get("/dead-letters?campaign=x").is(200).has("That is not a number")
	b.get("/dead-letters.csv?campaign=72").is(200).has("campaign_name", "campaign,72,Spring 72").hasNot("Spring 71")
	b.get("/deliveries?kind=campaign").is(200).has("Spring 71", "Spring 72")
	b.get("/dead-letters/replay?campaign=71").is(200).has("1 still in time", `name="campaign" value="71"`)
	b.post("/dead-letters/discard", url.Values{"campaign": {"71"}}).to("/dead-letters?campaign=71")
	g.must(g.DeadLetters.Step(t.Context()))
	b.get("/dead-letters").is(200).has("3 dead letters", "campaign #71")
}

var links = regexp.MustCompile(`href="(/dead-letters/list[^"]*)"`)

func TestGroupsLeadToTheirLetters(t *testing.T) {
	g := buried(t)
	viewer := g.as(staff.Viewer)
	seen := ""
	for _, m := range links.FindAllStringSubmatch(viewer.get("/dead-letters").is(200).body, -1) {
		seen += viewer.get(html.UnescapeString(m[1])).is(200).body
	}
	for _, id := range []string{"1001", "1002"} {
		if strings.Count(seen, `href="/templates/1/users/`+id+`"`) != 1 {
			t.Errorf("user %s is not found once by following the groups", id)
		}
	}
}

func TestManyDeadLettersArePaged(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	for id := user.ID(1); id <= shell.PageSize+2; id++ {
		g.book(d, id, delivery.App, 5)
	}
	g.fire(d, 1, func(delivery.Message) delivery.Result { return delivery.Result{Detail: "down"} })
	viewer := g.as(staff.Viewer)
	first := viewer.get("/dead-letters/list?template=1").is(200).has("Next page").hasNot("First page")
	next := html.UnescapeString(between(between(first.body, `<nav class="pager"`, `</nav>`), `href="`, `"`))
	second := viewer.get(next).is(200).has("First page").hasNot("Next page")
	if a, b := strings.Count(first.body, `class="row-link"`), strings.Count(second.body, `class="row-link"`); a != shell.PageSize || b != 2 {
		t.Errorf("%d letters on the first page and %d on the second", a, b)
	}
	viewer.get("/dead-letters/list?after=x_y").is(200).has("Next page")
}

func TestReplay(t *testing.T) {
	g := buried(t)
	operator := g.as(staff.Operator)
	operator.get("/dead-letters/replay?template=1").is(200).has("2 still in time, 0 would be too late, 0 already sent by another attempt", "Replay 2 messages", `name="template" value="1"`)
	operator.get("/dead-letters/replay?template=99").is(200).has("A replay would reach nobody").hasNot("Replay 0")
	operator.post("/dead-letters/replay", url.Values{"rate_per_second": {"plenty"}, "reason": {"it is back"}}).is(422).has("must be a whole number", `value="plenty"`, `value="it is back"`)
	operator.post("/dead-letters/replay", url.Values{"rate_per_second": {"-1"}}).is(422).has("must be between 0 and 1,000,000")
	operator.post("/dead-letters/replay", url.Values{"user": {"ada"}}).to("/dead-letters?user=ada")
	operator.post("/dead-letters/discard", url.Values{"user": {"ada"}}).to("/dead-letters?user=ada")
	operator.get("/dead-letters").is(200).hasNot("Replays and discards")
	operator.post("/dead-letters/replay", url.Values{"template": {"1"}, "rate_per_second": {"5"}, "reason": {"it is back"}}).to("/dead-letters?template=1")
	operator.get("/dead-letters").is(200).has("The replay has begun.", "0 of 2", "The operator", "/dead-letters/jobs/1/cancel", `data-live="/dead-letters/jobs"`, "Live")
	operator.get("/audit?kind=dead_letters").is(200).has("it is back")
	part := g.as(staff.Viewer).htmx()
	if a := part.get("/dead-letters/jobs").is(200).has("0 of 2", "running").hasNot("<html", "/cancel"); a.header.Get("HX-Trigger") != "" {
		t.Error("the page is told to load anew while the job runs")
	}
	g.must(g.DeadLetters.Step(t.Context()))
	operator.get("/dead-letters").is(200).has("2 of 2: 2 tried again", "finished")
	if a := part.get("/dead-letters/jobs").is(200); a.header.Get("HX-Trigger") != "dropbell:reload" {
		t.Error("the page is not told that the job has ended")
	}
	g.deliver(takes)
	operator.get("/dead-letters").is(200).has("No dead letters").hasNot("data-live")
	operator.get("/templates/1/balance").is(200).has("Nobody is missing", "3 reserved = 3 delivered")
	operator.get("/dead-letters/jobs").to("/dead-letters")
}

func TestDryRunTellsWhoIsTooLateOrWasReached(t *testing.T) {
	g := buried(t)
	g.exec(`update batches set worthless_after = clock_timestamp()`)
	g.as(staff.Operator).get("/dead-letters/replay").is(200).has("0 still in time, 2 would be too late", "You can discard these dead letters").hasNot("Replay 2")
}

func TestDiscard(t *testing.T) {
	g := buried(t)
	operator := g.as(staff.Operator).htmx()
	operator.get("/dead-letters/discard?user=1001").is(200).has("1 message is discarded", "This cannot be undone.", `name="user" value="1001"`, "Reason").hasNot("<html")
	a := operator.post("/dead-letters/discard", url.Values{"user": {"1001"}}).is(200)
	if a.header.Get("HX-Redirect") != "/dead-letters?user=1001" {
		t.Errorf("leads to %q", a.header.Get("HX-Redirect"))
	}
	g.must(g.DeadLetters.Step(t.Context()))
	operator.get("/dead-letters").is(200).has("1 dead letter").hasNot("HTTP 503")
	operator.get("/templates/1/users/1001").is(200).has("was given up", "Discarded by an operator.")
	operator.get("/templates/1/balance").is(200).has("3 reserved = 1 delivered + 0 skipped + 0 expired + 2 failed")
}

// The dry run goes by the rate that is typed, read as everywhere else, and says
// how long the replay takes and who is too late only because of it.
func TestDryRunAtARate(t *testing.T) {
	g := buried(t)
	// Ten more dead letters, in a second batch.
	g.exec(`with b as (insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due, due_count, dead_count, state, due_at, worthless_after)
			select kind, owner_id, template_id, channel, 2001, 2010, due, 10, 10, 'done', due_at, now() + interval '1 hour' from batches order by id limit 1 returning id, channel)
		insert into exceptions (batch_id, user_id, channel, outcome, reason) select b.id, i, b.channel, 'dead', 'attempts_used_up' from b, generate_series(2001, 2010) i`)
	g.exec(`update batches set worthless_after = clock_timestamp() + interval '1 hour'`)
	operator := g.as(staff.Operator)
	operator.get("/dead-letters/replay").is(200).has("12 still in time", "as fast as the channel allows.", `hx-get="/dead-letters/replay?part=run"`).hasNot("per second this takes")
	for _, rate := range []string{"2", " 2 ", "２", "%E3%80%802"} {
		operator.get("/dead-letters/replay?rate_per_second="+strings.ReplaceAll(rate, " ", "+")).is(200).has("12 still in time", "At 2 per second this takes about 6 s.").hasNot("higher rate")
	}
	operator.get("/dead-letters/replay?rate_per_second=plenty").is(200).has("must be a whole number", `aria-invalid="true"`, "Enter a valid rate").hasNot("still in time")
	operator.get("/dead-letters/replay?rate_per_second=-1").is(200).has("must be between 0 and 1,000,000")
	part := g.as(staff.Operator).htmx()
	part.get("/dead-letters/replay?part=run&rate_per_second=３").is(200).has("At 3 per second this takes about 4 s.", `<hx-partial hx-target="#replay-submit"`, "Replay 12 messages").hasNot("<form", "<html")
	part.get("/dead-letters/replay?part=run&rate_per_second=1,5").is(200).has("At most: ").hasNot("still in time", "Replay 12")
	part.get("/dead-letters/replay?part=run&user=2001&rate_per_second=1").is(200).has("1 still in time", "Replay 1 message")
	// The time is too short for the rate: eleven seconds, or what is left of them, for twelve.
	g.exec(`update batches set worthless_after = clock_timestamp() + interval '11 seconds'`)
	page := part.get("/dead-letters/replay?part=run&rate_per_second=1").is(200).has("of those too late would be in time at a higher rate.")
	page.hasNot("12 still in time")
	part.get("/dead-letters/replay?part=run&rate_per_second=1000").is(200).has("12 still in time").hasNot("at a higher rate.")
}

// A double click is one replay, or one discard.
func TestDeadLetterFormsSentTwice(t *testing.T) {
	g := buried(t)
	operator := g.as(staff.Operator)
	for i, path := range []string{"/dead-letters/replay", "/dead-letters/discard"} {
		form := url.Values{"user": {"1001"}, "request_key": {operator.get(path + "?user=1001").is(200).field("request_key")}}
		if i == 0 { // what was refused keeps its key
			form.Set("rate_per_second", "-1")
			operator.post(path, form).is(422).has(form.Get("request_key"))
			form.Del("rate_per_second")
		}
		for range 2 {
			operator.post(path, form).to("/dead-letters?user=1001")
		}
		if n := g.number(`select count(*) from dead_letter_jobs`); n != int64(i+1) {
			t.Errorf("%s twice: %d jobs, want %d", path, n, i+1)
		}
	}
}

func TestStopAJob(t *testing.T) {
	g := buried(t)
	operator := g.as(staff.Operator)
	operator.post("/dead-letters/replay", nil).to("/dead-letters")
	operator.get("/dead-letters/jobs/1/cancel").is(200).has("Stop this job?", "What is done so far is kept: 0 of 2.")
	operator.post("/dead-letters/jobs/1/cancel", nil).to("/dead-letters")
	operator.post("/dead-letters/jobs/1/cancel", nil).is(http.StatusNotFound).has("There is no such job, or it has ended.")
	operator.get("/dead-letters/jobs/7/cancel").is(http.StatusNotFound)
	g.must(g.DeadLetters.Step(t.Context()))
	operator.get("/dead-letters").is(200).has("stopped", "2 dead letters")
}

func TestDeadLettersOfOtherShopsAreOutOfReach(t *testing.T) {
	g := buried(t)
	g.shop(11)
	g.as(staff.Operator).post("/dead-letters/replay", nil).to("/dead-letters")
	foreign := g.as(staff.Operator, 11)
	foreign.get("/dead-letters").is(200).has("No dead letters").hasNot("HTTP 503", "Replays and discards")
	foreign.get("/dead-letters/list").is(200).hasNot("User 1001")
	foreign.get("/dead-letters/replay").is(200).has("0 still in time, 0 would be too late")
	foreign.get("/dead-letters/jobs/1/cancel").is(http.StatusNotFound)
	foreign.post("/dead-letters/jobs/1/cancel", nil).is(http.StatusNotFound)
	foreign.post("/dead-letters/discard", nil).to("/dead-letters")
	foreign.get("/dead-letters").is(200).has("Discard:") // their own job, on nothing
	g.as(staff.Operator, 10).get("/dead-letters").is(200).has("2 dead letters")
}

// What is over stands below what is still to be done.
func TestPastJobsStandBelowTheDeadLetters(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Operator)
	g.exec(`insert into dead_letter_jobs (action, filter, state, created_by) values ('discard', '{}', 'finished', 'staff:1 x'), ('replay', '{}', 'running', 'staff:1 x')`)
	body := b.get("/dead-letters").is(200).body
	running, results, past := strings.Index(body, `id="letter-jobs"`), strings.Index(body, `id="results"`), strings.Index(body, `id="past-jobs"`)
	if running < 0 || running > results || past < results {
		t.Errorf("running at %d, dead letters at %d, past at %d", running, results, past)
	}
}

// The pages tell of dead letters that wait for a decision, and of no others.
func TestDiscardedLettersRaiseNoAlarm(t *testing.T) {
	g := buried(t)
	viewer := g.as(staff.Viewer)
	const told = "2 reminders could not be delivered: refused permanently, or out of attempts."
	viewer.get("/").is(200).has("2 reminders failed")
	viewer.get("/templates/1").is(200).has(told)
	viewer.get("/templates/1/cockpit").is(200).has(told)
	g.as(staff.Operator).post("/dead-letters/discard", url.Values{"template": {"1"}, "reason": {"too late"}}).to("/dead-letters?template=1")
	g.must(g.DeadLetters.Step(t.Context()))
	viewer.get("/dead-letters?template=1").is(200).has("No matches")
	viewer.get("/").is(200).has("All is well").hasNot("reminders failed")
	viewer.get("/templates/1").is(200).hasNot("could not be delivered")
	viewer.get("/templates/1/balance").is(200).has("3 reserved = 1 delivered + 0 skipped + 0 expired + 2 failed")
	viewer.get("/templates/1/cockpit").is(200).hasNot("could not be delivered")
}
