package audience

import (
	"encoding/json"

	"github.com/a-h/templ"

	"dropbell/domain/job"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	audiencepages "dropbell/views/pages/audience"
	"dropbell/web/console/shell"
)

// importOutcome renders the result of a job that reads a table of users or counts a segment, for
// the job's page.
func importOutcome(j job.Job) templ.Component {
	if len(j.Result) == 0 {
		return nil
	}
	switch j.Kind {
	case user.CheckJob, user.ImportJob:
		var result user.ImportResult
		if json.Unmarshal(j.Result, &result) != nil {
			return nil
		}
		return audiencepages.ImportOutcome{Result: result, Check: j.Kind == user.CheckJob, Over: j.State.Over()}.Part()
	case segment.CountJob, segment.ListJob:
		var params struct {
			SegmentID int64 `json:"segment_id,string"`
		}
		if json.Unmarshal(j.Params, &params) != nil {
			return nil
		}
		return audiencepages.SegmentLink(params.SegmentID)
	}
	return nil
}

// importNotes returns how many rows of a check have a note and are imported all the same.
func importNotes(j job.Job) int64 {
	var result user.ImportResult
	if j.Kind != user.CheckJob || len(j.Result) == 0 || json.Unmarshal(j.Result, &result) != nil {
		return 0
	}
	return result.Repeated
}

// showImportJobs sets the content of the job pages of imports and of segments.
func (h *handlers) showImportJobs() {
	h.ShowJobs(shell.JobView{Actions: h.importActions, Outcome: importOutcome, Noted: importNotes,
		// Rows of a file of users contain contacts.
		MayReadRows: func(by staff.Actor) error { return by.MayEverywhere(staff.ManageUsers) }}, user.CheckJob, user.ImportJob)
	h.ShowJobs(shell.JobView{Outcome: importOutcome}, segment.CountJob, segment.ListJob)
}
