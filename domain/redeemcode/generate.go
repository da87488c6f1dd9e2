package redeemcode

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"dropbell/domain/job"
)

// JobKind is the kind of the jobs that generate codes.
const JobKind = "codes.generate"

// partsPerStep bounds a step: generating fifty thousand codes and reading them back
// takes about a third of a second.
const partsPerStep int64 = 5

// GenerateParams are the parameters of a job of [JobKind].
type GenerateParams struct {
	BatchID int64 `json:"batch_id,string"`
}

type generateCursor struct {
	NextPart int64 `json:"next_part"`
}

// GeneratingStore stores the progress of generation.
type GeneratingStore interface {
	// Batch returns [ErrBatchNotFound] if there is none.
	Batch(ctx context.Context, id int64) (Batch, error)
	// SaveParts stores checksums and, once all checksums of the batch are stored,
	// makes the batch ready and announces it, in one transaction. Parts that are
	// stored already stay. It returns [ErrKeyMissing] if a stored part has another
	// checksum.
	SaveParts(ctx context.Context, b Batch, parts []Part) error
}

// Generator executes jobs of [JobKind]: it derives every code of the batch, reads
// each code back, and stores checksums.
type Generator struct {
	Store GeneratingStore
	Keys  *Keyring
	// PartsPerStep bounds a step; 0 = 5 parts.
	PartsPerStep int64
}

// Step generates the next parts; see [job.Runner]. It returns [ErrKeyMissing] if
// the key is missing or differs from the key of earlier parts.
func (g *Generator) Step(ctx context.Context, j job.Job) (job.Progress, error) {
	var params GenerateParams
	var at generateCursor
	if err := json.Unmarshal(j.Params, &params); err != nil {
		return job.Progress{}, ErrBatchNotFound.Because("the job's parameters cannot be read: %v", err)
	}
	if len(j.Cursor) > 0 {
		if err := json.Unmarshal(j.Cursor, &at); err != nil {
			return job.Progress{}, fmt.Errorf("cursor of job %d: %w", j.ID, err)
		}
	}
	b, err := g.Store.Batch(ctx, params.BatchID)
	if err != nil {
		return job.Progress{}, err
	}
	if b.State == Revoked {
		return job.Progress{}, ErrRevoked
	}
	end := min(at.NextPart+cmp.Or(g.PartsPerStep, partsPerStep), b.parts())
	var parts []Part
	for i := at.NextPart; i < end; i++ {
		p, err := g.Keys.seal(b, i)
		if err != nil {
			return job.Progress{}, err
		}
		parts = append(parts, p)
	}
	if err := g.Store.SaveParts(ctx, b, parts); err != nil {
		return job.Progress{}, err
	}
	cursor, err := json.Marshal(generateCursor{end})
	return job.Progress{Cursor: cursor, Total: b.Count, Done: min(end*PartSize, b.Count), Finished: end >= b.parts()}, err
}

// seal derives part i of b, checks that every code reads back as its serial number,
// and returns the checksum of the part.
func (k *Keyring) seal(b Batch, i int64) (Part, error) {
	first, count := b.part(i)
	sum, line, next := sha256.New(), make([]byte, 0, 32), first
	err := k.each(b.Key, first, count, func(c Code) error {
		line = append(c.append(line[:0]), '\n')
		read, err := Parse(string(line))
		if err != nil {
			return fmt.Errorf("serial number %d: %w", next, err)
		}
		if s, err := k.Serial(read); err != nil || s != next {
			return fmt.Errorf("serial number %d reads back as %d: %w", next, s, err)
		}
		sum.Write(line)
		next++
		return nil
	})
	return Part{Number: i, Codes: count, SHA256: [32]byte(sum.Sum(nil))}, err
}
