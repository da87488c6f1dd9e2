package fault

import "errors"

// Refusal returns the refusal that err is, to be stored for staff to read: a fault of the kinds [Invalid], [NotFound],
// [Conflict] or [Denied], or the first of [Fields]. It returns any other error as it is, also [ErrStale], after which
// the same step succeeds.
func Refusal(err error) (*Fault, error) {
	if err == nil {
		return nil, nil
	}
	if broken, ok := errors.AsType[*Fields](err); ok && len(broken.List) > 0 {
		return New(Invalid, ErrInvalid.Code, broken.Error()).Told(broken.List[0].Key), nil
	}
	f, ok := errors.AsType[*Fault](err)
	if kind := KindOf(err); !ok || errors.Is(err, ErrStale) || kind != Invalid && kind != Conflict && kind != Denied && kind != NotFound {
		return nil, err
	}
	return &Fault{Kind: f.Kind, Code: f.Code, Text: err.Error(), Key: f.Key}, nil
}
