(* arp.ml: a small TCP stack that sometimes hangs when it connects; arp.c in OCaml, with Lwt.

	arp good	the network card reports that it has sent the ARP request, then the answer to it comes
	arp bad		the answer comes before the report

   To connect, TCP sends a segment; IP needs the hardware address of the other side; ARP asks for that address and waits for the
   answer.  One line of this stack is wrong, which shows only if things happen in the other order: record both.

	WEFT_TRACE=good.weft ./arp.exe good; WEFT_TRACE=bad.weft ./arp.exe bad

   Exits 0: connected, 1: nothing happened for a second.  SPDX-License-Identifier: ISC *)

open Weft_lwt
open Lwt.Syntax

type frame = Arp_request | Arp_response | Tcp_syn | Tcp_syn_ack

(* ---- The other side of the wire ---- *)

type notice = Sent of unit Lwt.u | Received of frame

let reports_late = Array.length Sys.argv > 1 && Sys.argv.(1) = "bad"
let notices : notice Queue.t = Queue.create ()
let interrupt : unit Lwt.u option ref = ref None

let notify notice =
  Queue.add notice notices;
  match !interrupt with
  | None -> ()
  | Some port ->
    interrupt := None;
    Lwt.wakeup_later port ()

(* Reports the frame and delivers its answer, in one order or the other. *)
let card_send frame sent =
  let report = Sent sent and answer = Received (if frame = Arp_request then Arp_response else Tcp_syn_ack) in
  let first, second = if reports_late then (answer, report) else (report, answer) in
  Lwt.async (fun () ->
      let* () = Lwt_unix.sleep 0.01 in
      notify first;
      let* () = Lwt_unix.sleep 0.02 in
      notify second;
      Lwt.return_unit)

(* ---- The stack ---- *)

let knows_address = ref false
let arp_response : unit Lwt_condition.t = Trace.named_condition "ARP response"
let connection, connecting = Trace.named_task "TCP connect"
let tcp_to_ip = Counter.create ~name:"tcp-to-ip" ()

(* Is resolved when the card reports that the frame is on the wire. *)
let ring_write frame =
  let p, sent = Trace.named_task "ring.write" in
  card_send frame sent;
  p

let arp_query () =
  if !knows_address then Lwt.return_unit
  else
    (* The bug: a broadcast during the wait for the write is lost. *)
    let* () = ring_write Arp_request in
    Lwt_condition.wait arp_response

let ip_write () =
  Counter.increase tcp_to_ip 1;
  let* () = arp_query () in
  Counter.increase tcp_to_ip (-1);
  ring_write Tcp_syn

let tcp_connect () =
  let* () = ip_write () in
  connection

let handle = function
  | Sent sent -> Lwt.wakeup_later sent ()
  | Received Arp_response ->
    knows_address := true;
    Lwt_condition.broadcast arp_response ()
  | Received _ -> Lwt.wakeup_later connecting ()

(* Waits for an interrupt, handles the card's notices, and starts again. *)
let rec driver () =
  let p, port = Trace.named_task "port-4" in
  interrupt := Some port;
  let* () = p in
  Queue.iter handle notices;
  Queue.clear notices;
  driver ()

let () =
  Weft.record_gc ();
  Lwt.async (fun () ->
      Trace.label "network driver";
      driver ());
  let connected = tcp_connect () in
  Trace.name connected "main";
  Trace.should_resolve connected;
  let timeout = Lwt.map (fun () -> false) (Lwt_unix.sleep 1.0) in
  if Lwt_main.run (Lwt.choose [ Lwt.map (fun () -> true) connected; timeout ]) then print_endline "connected"
  else begin
    prerr_endline "arp: not connected after a second";
    exit 1
  end
