(** Records the promises of Lwt for weft, with the calls of mirage-profile.

    [open Weft_lwt] at the start of a file, or [-open Weft_lwt] for all files of a program, replaces [Lwt], [Lwt_condition],
    [Lwt_mvar] and [Lwt_main] by modules of the same types that record what they do.  Lwt itself is not changed: promises of
    code that does not open this module are waits without a name.  While nothing records, each function costs a load and a
    branch more. *)

module Trace : sig
  type hiatus_reason = Wait_for_work | Suspend | Hibernate

  val label : string -> unit
  (** Labels the running promise. *)

  val name : 'a Lwt.t -> string -> unit
  (** Labels a pending promise. *)

  val named_wait : string -> 'a Lwt.t * 'a Lwt.u
  val named_task : string -> 'a Lwt.t * 'a Lwt.u
  val named_condition : string -> 'a Lwt_condition.t
  val named_mvar : string -> 'a -> 'a Lwt_mvar.t
  val named_mvar_empty : string -> 'a Lwt_mvar.t

  val should_resolve : 'a Lwt.t -> unit
  (** Declares that a promise must end: if it never does, [weft explain] says why. *)

  val note_increase : string -> int -> unit
  (** Adds to the counter with this name.  {!Counter.increase} does not search for the name. *)

  val note_counter_value : string -> int -> unit
  (** Sets the counter with this name. *)

  val note_hiatus : hiatus_reason -> unit
  val note_resume : unit -> unit
end

module Counter : module type of struct
  include Weft.Counter
end

module Lwt_condition : module type of struct
  include Lwt_condition
end

module Lwt_mvar : module type of struct
  include Lwt_mvar
end

module Lwt_main : module type of struct
  include Lwt_main
end

module Lwt : sig
  include module type of struct
    include Lwt
  end
  with module Infix := Lwt.Infix
   and module Let_syntax := Lwt.Let_syntax
   and module Syntax := Lwt.Syntax

  module type Let_syntax_type = sig
    val return : 'a -> 'a Lwt.t
    val map : 'a Lwt.t -> f:('a -> 'b) -> 'b Lwt.t
    val bind : 'a Lwt.t -> f:('a -> 'b Lwt.t) -> 'b Lwt.t
    val both : 'a Lwt.t -> 'b Lwt.t -> ('a * 'b) Lwt.t

    module Open_on_rhs : sig end
  end

  module Infix : sig
    val ( >>= ) : 'a Lwt.t -> ('a -> 'b Lwt.t) -> 'b Lwt.t
    val ( =<< ) : ('a -> 'b Lwt.t) -> 'a Lwt.t -> 'b Lwt.t
    val ( >|= ) : 'a Lwt.t -> ('a -> 'b) -> 'b Lwt.t
    val ( =|< ) : ('a -> 'b) -> 'a Lwt.t -> 'b Lwt.t
    val ( <&> ) : unit Lwt.t -> unit Lwt.t -> unit Lwt.t
    val ( <?> ) : 'a Lwt.t -> 'a Lwt.t -> 'a Lwt.t

    module Let_syntax : Let_syntax_type
  end

  module Let_syntax : sig
    module Let_syntax : Let_syntax_type
  end

  module Syntax : sig
    val ( let* ) : 'a Lwt.t -> ('a -> 'b Lwt.t) -> 'b Lwt.t
    val ( and* ) : 'a Lwt.t -> 'b Lwt.t -> ('a * 'b) Lwt.t
    val ( let+ ) : 'a Lwt.t -> ('a -> 'b) -> 'b Lwt.t
    val ( and+ ) : 'a Lwt.t -> 'b Lwt.t -> ('a * 'b) Lwt.t
  end
end
