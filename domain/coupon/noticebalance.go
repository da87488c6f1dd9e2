package coupon

// NoticeBalance compares the counters of the calendar for one template's notices of
// one day with the stored notices. Both must be read from one snapshot: each change
// of a notice changes both.
type NoticeBalance struct {
	TemplateID int64
	Kept       NoticeDay // the calendar
	// Waiting, Sent and Failed count stored notices by status, without notices that
	// became unnecessary.
	Waiting, Sent, Failed int64
}

// Difference returns how many notices are not accounted for, or are twice.
func (b NoticeBalance) Difference() int64 {
	stored := b.Waiting + b.Sent + b.Failed
	return abs(b.Kept.Planned-b.Kept.Dropped-stored) + abs(b.Kept.Sent-b.Sent) + abs(b.Kept.Failed-b.Failed)
}

func abs(n int64) int64 { return max(n, -n) }

// RunBalance compares the notices of one finished run with its batches. Different
// steps write them: the workers that send write the batches; the notices are
// written once all batches are done.
type RunBalance struct {
	Run, TemplateID int64
	Readers         int64 // of the batches
	// Lost counts users in a batch who have no notice, although a notice was still
	// necessary.
	Lost int64
	// Wrong counts notices whose status contradicts the batches: stored as sent
	// though no channel reached the user, or the opposite; without a status; or of
	// a user who is in no batch.
	Wrong int64
}

// Difference returns how many readers are not accounted for.
func (b RunBalance) Difference() int64 { return b.Lost + b.Wrong }
