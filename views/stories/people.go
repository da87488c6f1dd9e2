package stories

import (
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	audiencepages "dropbell/views/pages/audience"
	pageparts "dropbell/views/pages/parts"
)

// audiences are the pages around users: links, imports, segments.
func audiences() []Story {
	var all []Story
	for _, group := range [][]Story{optOuts(), imports(), segments(), suppressions(), mailChecks(), userForms()} {
		all = append(all, group...)
	}
	return all
}

func optOuts() []Story {
	page := audiencepages.OptOut{Action: "/u/AQEAAAAAAAAD6UtYZWoPsA0glCgeUcX-ggY", Channel: delivery.Email, Offered: []delivery.Channel{delivery.App, delivery.Email, delivery.SMS}}
	off := page
	off.Off, off.Saved = delivery.Email.Bit()|delivery.SMS.Bit(), true
	return []Story{
		{Name: "optout/ask", Page: page.Page(), Outside: true},
		{Name: "optout/off", Page: off.Page(), Outside: true},
		{Name: "optout/missing", Page: audiencepages.OptOutFailure{Status: 404}.Page(), Outside: true},
		{Name: "optout/busy", Page: audiencepages.OptOutFailure{Status: 429}.Page(), Outside: true},
		{Name: "optout/unavailable", Page: audiencepages.OptOutFailure{Status: 503}.Page(), Outside: true},
	}
}

func imports() []Story {
	columns := audiencepages.ImportColumns{Upload: job.Upload{ID: 7, Name: "members of the club"}, Columns: []audiencepages.ImportColumn{
		{Header: "User ID", Samples: []string{"1001", "1002"}, Target: "id"}, {Header: "E-Mail", Samples: []string{"ann@example.com"}, Target: "email"},
		{Header: "Loyalty tier", Samples: []string{"gold", "silver", "gold"}, Target: audiencepages.AttributeTarget, Attribute: "Loyalty_tier"}, {Header: "Internal remark that nobody needs", Target: ""}}}
	columns.Format = job.Format{Encoding: job.UTF8}
	unsure, sheets := columns, columns
	unsure.Format = job.Format{Encoding: job.GB18030, Ambiguous: true}
	sheets.Format = job.Format{Sheets: []string{"会员", "Former members", "Notes"}, Sheet: 1}
	wrong := columns
	wrong.Errors = []fault.Field{{Name: "columns", Key: "rule.import_id", Message: "one column must hold the user's id"}, {Name: "columns[1]", Key: "rule.import_twice", Message: "another column has this already"}}
	check := job.Job{ID: 12, Kind: user.CheckJob, Title: "Members of the club", State: job.Done, Done: 48_210, Failed: 3, CreatedBy: "staff:2 Ada Okafor", CreatedAt: Now(), UploadID: 7}
	done := pageparts.Work{Job: check, Upload: "members of the club", MayStop: true, Outcome: audiencepages.ImportOutcome{Result: user.ImportResult{New: 1200, Changed: 310, Unchanged: 46_700, Invalid: 3}, Check: true, Over: true}.Part(),
		Errors: []job.RowError{{Line: 17, Row: "1017 | not an address", Because: []fault.Field{{Name: "email", Key: "rule.email", Message: "must be an e-mail address"}}}},
		Noted:  1, Notes: []job.RowError{{Line: 21, Row: "1003 | Ann", Because: []fault.Field{{Key: "rule.repeated_id", Message: "the id of line 4 appears again on line 21; the last one counts"}}}},
		Last: job.RowError{Line: 48_213, Because: []fault.Field{{Key: job.ReadingEnded, Message: "a quote is never closed; nothing behind it could be read"}}}}
	return []Story{
		{Name: "import/start", Page: audiencepages.ImportStart{}.Page()},
		{Name: "import/refused", Page: audiencepages.ImportStart{Errors: []fault.Field{{Name: "file", Key: "rule.file_unreadable", Message: "cannot be read"}}}.Page()},
		{Name: "import/columns", Page: columns.Page()},
		{Name: "import/columns-encoding", Page: unsure.Page()},
		{Name: "import/columns-sheets", Page: sheets.Page()},
		{Name: "import/busy", Page: audiencepages.ImportStart{Errors: []fault.Field{{Name: "file", Key: "rule.file_busy", Message: job.ErrBusy.Text}}}.Page()},
		{Name: "import/columns-wrong", Page: wrong.Page()},
		{Name: "import/checked", Page: done.Page()},
	}
}

func segments() []Story {
	rule := segment.Rule{Match: segment.All, Rules: []segment.Rule{segment.Leaf(segment.Attribute, "tier", segment.OneOf, "gold", "platinum"), segment.Leaf(segment.Locale, "", segment.OneOf, "zh"),
		{Match: segment.None, Rules: []segment.Rule{segment.Leaf(segment.OptedOut, "", segment.Is, "email"), segment.Leaf(segment.Claimed, "", segment.WithinDays, "30")}}}}
	members, at := int64(18_230), Now()
	gold := segment.Segment{ID: 3, Name: "Gold members who read Chinese", Kind: segment.ByRules, Rule: rule, Version: 4, Members: &members, CountedAt: &at, CreatedBy: "staff:2 Ada Okafor", UpdatedAt: at}
	list := segment.Segment{ID: 4, Name: "Visitors of the fair", Kind: segment.ByList, Members: &members, CountedAt: &at, CreatedBy: "staff:1 Lin Mei", UpdatedAt: at}
	about := &segment.Estimate{Members: 18_100, Margin: 900, Users: 10_000_000, Looked: 21_400}
	form := audiencepages.SegmentForm{Segment: gold, Name: gold.Name, Rule: rule, Estimate: about, Attributes: []string{"city", "tier"}, Zones: []string{"Asia/Shanghai", "Europe/Paris"}, Names: pageparts.DropNames{"1": "Moon cake night"}}
	wrong := audiencepages.SegmentForm{Rule: segment.Rule{Match: segment.Any, Rules: []segment.Rule{audiencepages.BlankCondition(), segment.Leaf(segment.Contact, "", segment.Has, "email")}},
		Errors: []fault.Field{{Name: "name", Key: "rule.required", Message: "is required"}, {Name: "rule.any[0].name", Key: "rule.attribute_name", Message: "must be letters"}}}
	stale := form
	stale.Stale = true
	return []Story{
		{Name: "segments/empty", Page: audiencepages.Segments{}.Page()},
		{Name: "segments/none", Page: audiencepages.Segments{Search: "x"}.Page()},
		{Name: "segments/one", Page: audiencepages.Segments{List: []segment.Segment{gold}}.Page()},
		{Name: "segments/many", Page: audiencepages.Segments{List: []segment.Segment{gold, list, {ID: 5, Name: "New", Kind: segment.ByRules, UpdatedAt: at}}, Paged: pageparts.Paged{Next: "/segments?after=1.1", Export: "/segments.csv"}}.Page()},
		{Name: "segment/rules", Page: audiencepages.Segment{Segment: gold, Estimate: about, Uses: []segment.Use{{CampaignID: 9, Name: "Autumn", State: "running"}}}.Page()},
		{Name: "segment/list", Page: audiencepages.Segment{Segment: list, Files: []audiencepages.ListFile{
			{Job: job.Job{ID: 31, State: job.Running, Done: 240_000, CreatedAt: at}, Open: true},
			{Job: job.Job{ID: 22, State: job.Failed, Reason: "sheet_unreadable", CreatedAt: at}},
			{Job: job.Job{ID: 21, State: job.Done, Done: 18_230, Failed: 12, CreatedAt: at}, Open: true},
		}}.Page()},
		{Name: "segment/list-kept", Page: audiencepages.Segment{Segment: list, Uses: []segment.Use{{CampaignID: 9, Name: "Autumn", State: "scheduled", Keeps: true}}}.Page()},
		{Name: "segment/list-without-file", Page: audiencepages.Segment{Segment: list}.Page()},
		{Name: "segment/viewer", Page: audiencepages.Segment{Segment: gold}.Page(), Role: "viewer"},
		{Name: "segment-form/edit", Page: form.Page()},
		{Name: "segment-form/wrong", Page: wrong.Page()},
		{Name: "segment-form/stale", Page: stale.Page()},
		{Name: "segment-form/file", Page: audiencepages.ListForm{Errors: []fault.Field{{Name: "file", Key: "rule.file", Message: "choose a file"}}}.Page()},
	}
}

func userForms() []Story {
	values := map[string]string{"name": "Ann", "email": "ann@", "locale": "zh-CN", "timezone": "Asia/Shanghai", "quiet_from": "22:00", "quiet_to": "08:00"}
	return []Story{
		{Name: "user-form/edit", Page: audiencepages.UserForm{ID: 1001, Name: "1001", Values: values, Off: []string{"sms"}}.Page()},
		{Name: "user-form/some-shops", Page: audiencepages.UserForm{ID: 1001, Name: "1001", Off: []string{"sms"}, OnlyOff: true}.Page(), Role: staff.Marketer, Shops: []int64{10}},
		{Name: "user-form/overtaken", Page: audiencepages.UserForm{ID: 1001, Name: "1001", Values: values, Was: values, Errors: []fault.Field{{Name: "email", Message: "was changed to “ann@example.com” in the meantime; save again to keep your text"}}}.Page()},
		{Name: "user-form/wrong", Page: audiencepages.UserForm{ID: 1001, Name: "1001", Values: values, Errors: []fault.Field{{Name: "email", Key: "rule.email", Message: "must be an e-mail address"}, {Name: "quiet_hours", Key: "rule.quiet_hours", Message: "must be two times of day"}}}.Page()},
	}
}
